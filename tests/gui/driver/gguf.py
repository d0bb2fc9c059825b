"""Writes GGUF files that no sane person has: larger than the computer's memory (as a sparse file), or of a kind nobody knows.

SPDX-License-Identifier: LGPL-2.1-or-later
"""

import struct

UINT32, FLOAT32, STRING, ARRAY, INT32 = 4, 6, 8, 9, 5
F32 = 0
ALIGNMENT = 32


def _string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value):
    if isinstance(value, str):
        return struct.pack("<I", STRING) + _string(value)
    if isinstance(value, float):
        return struct.pack("<If", FLOAT32, value)
    if isinstance(value, int):
        return struct.pack("<II", UINT32, value)
    if value and isinstance(value[0], str):
        return struct.pack("<IIQ", ARRAY, STRING, len(value)) + b"".join(map(_string, value))
    return struct.pack("<IIQ", ARRAY, INT32, len(value)) + struct.pack(f"<{len(value)}i", *value)


def write(path, metadata, tensors):
    """`tensors`: name → dimensions, innermost first. All are F32 and zero; only the header takes space on the disk."""
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        header += _string(key) + _value(value)
    offset = 0
    for name, dims in tensors.items():
        header += _string(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
        header += struct.pack("<IQ", F32, offset)
        size = 4
        for dim in dims:
            size *= dim
        offset += -(-size // ALIGNMENT) * ALIGNMENT
    header += b"\0" * (-len(header) % ALIGNMENT)
    with open(path, "wb") as file:
        file.write(header)
        file.truncate(len(header) + offset)


def write_llama(path, architecture="llama", hidden=64, intermediate=128, layers=1):
    """A Llama-style model of any size. Its vocabulary: 256 bytes and the control tokens of ChatML."""
    # GPT-2's printable names of the bytes.
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    names, extra = {}, 0
    for byte in range(256):
        if byte in printable:
            names[byte] = chr(byte)
        else:
            names[byte] = chr(256 + extra)
            extra += 1
    tokens = [names[byte] for byte in range(256)] + ["<|im_start|>", "<|im_end|>", "ab"]
    vocab = len(tokens)
    head = 64
    metadata = {
        "general.architecture": architecture,
        "general.name": "Test",
        f"{architecture}.block_count": layers,
        f"{architecture}.context_length": 512,
        f"{architecture}.embedding_length": hidden,
        f"{architecture}.feed_forward_length": intermediate,
        f"{architecture}.attention.head_count": hidden // head,
        f"{architecture}.attention.head_count_kv": hidden // head,
        f"{architecture}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{architecture}.vocab_size": vocab,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [1] * 256 + [3, 3, 1],
        "tokenizer.ggml.merges": ["a b"],
        "tokenizer.ggml.eos_token_id": 257,
        "tokenizer.chat_template": "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}",
    }
    tensors = {"token_embd.weight": [hidden, vocab], "output_norm.weight": [hidden]}
    for layer in range(layers):
        tensors.update(
            {
                f"blk.{layer}.attn_norm.weight": [hidden],
                f"blk.{layer}.attn_q.weight": [hidden, hidden],
                f"blk.{layer}.attn_k.weight": [hidden, hidden],
                f"blk.{layer}.attn_v.weight": [hidden, hidden],
                f"blk.{layer}.attn_output.weight": [hidden, hidden],
                f"blk.{layer}.ffn_norm.weight": [hidden],
                f"blk.{layer}.ffn_gate.weight": [hidden, intermediate],
                f"blk.{layer}.ffn_up.weight": [hidden, intermediate],
                f"blk.{layer}.ffn_down.weight": [intermediate, hidden],
            }
        )
    write(path, metadata, tensors)
