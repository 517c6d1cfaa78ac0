//! The component side: generated bindings, and the mapping between them and [`crate::game`].
//!
//! Only in WebAssembly builds, and only for [`crate::export!`].

use crate::game;

/// What `wit-bindgen` makes of `wit/arena.wit`.
#[allow(missing_docs, unsafe_code, clippy::all, clippy::pedantic)]
pub mod bindings {
    wit_bindgen::generate!({
        world: "agent",
        path: "wit",
        pub_export_macro: true,
        export_macro_name: "export_component",
        default_bindings_module: "arena_guest::component::bindings",
    });
}

use bindings::arena::negotiation::types as wire;

/// Sends the message of a panic to the trace, since a trap alone says nothing.
pub fn note_panics() {
    std::panic::set_hook(Box::new(|panic| crate::trace::note(&panic.to_string())));
}

/// Reads a brief.
pub fn brief(brief: wire::Brief) -> game::Brief {
    let (high, low) = brief.seed;
    game::Brief {
        role: role(brief.role),
        item: game::Item {
            title: brief.item.title,
            category: brief.item.category,
            description: brief.item.description,
            list_price: brief.item.list_price,
        },
        reserve: brief.reserve,
        turn_limit: brief.message_limit,
        opens: brief.opens,
        rules: brief.rules,
        params: brief.params,
        seed: u64::from(high) << 32 | u64::from(low),
    }
}

/// Reads the events since the last turn.
pub fn news(news: Vec<wire::Event>) -> Vec<game::Event> {
    news.into_iter()
        .map(|event| match event {
            wire::Event::Refused => game::Event::Refused,
            wire::Event::Turn(turn) => game::Event::Turn(game::Turn {
                by: role(turn.by),
                action: match turn.move_ {
                    wire::Move::Offer(cents) => game::Move::Offer(cents),
                    wire::Move::Accept(cents) => game::Move::Accept(cents),
                    wire::Move::Reject => game::Move::Reject,
                    wire::Move::Walk => game::Move::Walk,
                },
                talk: turn.talk,
            }),
        })
        .collect()
}

/// Writes a reply.
pub fn reply(reply: game::Reply) -> wire::Reply {
    wire::Reply {
        move_: match reply.action {
            game::Move::Offer(cents) => wire::Move::Offer(cents),
            game::Move::Accept(cents) => wire::Move::Accept(cents),
            game::Move::Reject => wire::Move::Reject,
            game::Move::Walk => wire::Move::Walk,
        },
        talk: reply.talk,
        belief: reply
            .belief
            .map(|belief| wire::Belief { reserve: belief.reserve, spread: belief.spread }),
    }
}

/// Reads how a match ended.
pub fn end(end: wire::End) -> game::End {
    match end {
        wire::End::Deal(cents) => game::End::Deal(cents),
        wire::End::Impasse => game::End::Impasse,
        wire::End::Fault(name) => game::End::Fault(name),
    }
}

fn role(role: wire::Role) -> game::Role {
    match role {
        wire::Role::Buyer => game::Role::Buyer,
        wire::Role::Seller => game::Role::Seller,
    }
}

/// Makes a type that implements [`crate::Agent`] the agent of this component.
#[macro_export]
macro_rules! export {
    ($agent:ty) => {
        const _: () = {
            use $crate::component::bindings;
            use $crate::component::bindings::arena::negotiation::types as wire;

            struct Component;

            ::std::thread_local! {
                static SEAT: ::std::cell::RefCell<Option<$agent>> =
                    const { ::std::cell::RefCell::new(None) };
            }

            impl bindings::exports::arena::negotiation::negotiator::Guest for Component {
                fn begin(brief: wire::Brief) {
                    $crate::component::note_panics();
                    let agent = <$agent as $crate::Agent>::begin(&$crate::component::brief(brief));
                    SEAT.with(|seat| *seat.borrow_mut() = Some(agent));
                }

                fn act(news: ::std::vec::Vec<wire::Event>) -> wire::Reply {
                    let news = $crate::component::news(news);
                    SEAT.with(|seat| {
                        let mut seat = seat.borrow_mut();
                        let agent = seat.as_mut().expect("`begin` comes before `act`");
                        $crate::component::reply($crate::Agent::act(agent, &news))
                    })
                }

                fn finish(end: wire::End) {
                    let end = $crate::component::end(end);
                    SEAT.with(|seat| {
                        if let Some(agent) = seat.borrow_mut().as_mut() {
                            $crate::Agent::finish(agent, &end);
                        }
                    });
                }
            }

    bindings::export_component!(Component with_types_in bindings);
        };
    };
}
