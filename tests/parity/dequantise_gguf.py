"""Writes a copy of a GGUF file in which every tensor is F32.

The copy holds the same weights to the last bit, so that what differs between two engines on it is
their arithmetic, not what they do with quantised blocks.

    python dequantise_gguf.py FROM.gguf TO.gguf
"""

import sys

import numpy
from gguf import GGUFReader, GGUFValueType, GGUFWriter
from gguf.constants import LlamaFileType
from gguf.quants import dequantize


def dequantise(source: str, target: str) -> None:
    reader = GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    writer = GGUFWriter(target, architecture)
    for field in reader.fields.values():
        copy_field(writer, field)
    for tensor in reader.tensors:
        # The reader lists the innermost dimension first, numpy the outermost.
        shape = [int(dimension) for dimension in reversed(tensor.shape)]
        values = dequantize(tensor.data, tensor.tensor_type).astype(numpy.float32)
        writer.add_tensor(tensor.name, values.reshape(shape))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def copy_field(writer: GGUFWriter, field) -> None:
    # The writer adds these itself.
    if field.name == "general.architecture" or field.name.startswith("GGUF."):
        return
    if field.name == "general.file_type":
        writer.add_file_type(LlamaFileType.ALL_F32)
        return
    value_type = field.types[0]
    if value_type == GGUFValueType.ARRAY:
        writer.add_key_value(field.name, field.contents(), value_type, field.types[-1])
    else:
        writer.add_key_value(field.name, field.contents(), value_type)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    dequantise(sys.argv[1], sys.argv[2])
