// SPDX-License-Identifier: MIT OR Apache-2.0
// Quantized weights, as their formats define them: blocks of small integers with scales in f16. Every product is in f64.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Words = std::vector<uint16_t>;
using Bytes = std::vector<uint8_t>;

static double half(unsigned bits)
{
    int exponent = bits >> 10 & 31;
    double fraction = bits & 1023;
    double value = exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
    return bits & 0x8000 ? -value : value;
}

// The bytes of blocks that are given as words, lower byte first.
static Bytes bytes_of(const Words &words)
{
    Bytes result;
    for (uint16_t word : words) result.push_back(word & 255), result.push_back(word >> 8);
    return result;
}

static double half_at(const uint8_t *bytes) { return half(bytes[0] | bytes[1] << 8); }

// q4_0: a scale and 32 numbers of 4 bits, less 8; the lower halves of the bytes come first.
static void q4_0(const uint8_t *block, Doubles &result)
{
    double scale = half_at(block);
    for (int i = 0; i < 32; i++) {
        int byte = block[2 + i % 16];
        result.push_back(scale * ((i < 16 ? byte & 15 : byte >> 4) - 8));
    }
}

// q8_0: a scale and 32 signed bytes.
static void q8_0(const uint8_t *block, Doubles &result)
{
    for (int i = 0; i < 32; i++) result.push_back(half_at(block) * int8_t(block[2 + i]));
}

// q4_K: two scales, eight pairs of 6 bits (scale and minimum of 32 numbers each) in 12 bytes, and 256 numbers of 4 bits.
static void q4_K(const uint8_t *block, Doubles &result)
{
    const uint8_t *packed = block + 4, *numbers = block + 16;
    for (int group = 0; group < 8; group++) {
        int scale, minimum;
        if (group < 4) {
            scale = packed[group] & 63, minimum = packed[group + 4] & 63;
        } else {
            scale = (packed[group + 4] & 15) | packed[group - 4] >> 6 << 4;
            minimum = packed[group + 4] >> 4 | packed[group] >> 6 << 4;
        }
        for (int i = 0; i < 32; i++) {
            int byte = numbers[group / 2 * 32 + i], number = group % 2 ? byte >> 4 : byte & 15;
            result.push_back(half_at(block) * scale * number - half_at(block + 2) * minimum);
        }
    }
}

// q6_K: 256 numbers of 6 bits, less 32, whose lower 4 and upper 2 bits are apart, 16 signed scales, and a scale of them.
static void q6_K(const uint8_t *block, Doubles &result)
{
    for (int i = 0; i < 256; i++) {
        int part = i / 128, within = i % 128, low = block[part * 64 + within % 64];
        int lower = within < 64 ? low & 15 : low >> 4;
        int upper = block[128 + part * 32 + within % 32] >> (within / 32 * 2) & 3;
        result.push_back(half_at(block + 208) * int8_t(block[192 + i / 16]) * ((lower | upper << 4) - 32));
    }
}

using Format = void (*)(const uint8_t *, Doubles &);

static Doubles numbers(const Words &blocks, Format read, size_t bytes_of_block)
{
    Bytes bytes = bytes_of(blocks);
    Doubles result;
    for (size_t at = 0; at < bytes.size(); at += bytes_of_block) read(&bytes[at], result);
    return result;
}

Doubles q4_0_numbers(const Words &weights) { return numbers(weights, q4_0, 18); }

Doubles q4_K_numbers(const Words &weights) { return numbers(weights, q4_K, 144); }

Doubles q6_K_numbers(const Words &weights) { return numbers(weights, q6_K, 210); }

// The rows of a quantized table that the ids name.
Doubles q8_0_rows(const Words &weights, const std::vector<uint32_t> &ids, long columns)
{
    Doubles table = numbers(weights, q8_0, 34), result;
    for (uint32_t id : ids) result.insert(result.end(), &table[id * columns], &table[id * columns] + columns);
    return result;
}

static Doubles product(const Doubles &matrix, const Floats &vector)
{
    Doubles result(matrix.size() / vector.size());
    for (size_t i = 0; i < matrix.size(); i++) result[i / vector.size()] += matrix[i] * vector[i % vector.size()];
    return result;
}

Doubles q4_0_product(const Words &weights, const Floats &vector) { return product(q4_0_numbers(weights), vector); }

Doubles q4_K_product(const Words &weights, const Floats &vector) { return product(q4_K_numbers(weights), vector); }

Doubles q6_K_product(const Words &weights, const Floats &vector) { return product(q6_K_numbers(weights), vector); }

// The vector as 32 signed bytes and a scale would hold it.
static Floats rounded(const Floats &vector)
{
    Floats result;
    for (size_t block = 0; block < vector.size(); block += 32) {
        double greatest = 0;
        for (int i = 0; i < 32; i++) greatest = std::max(greatest, std::abs(double(vector[block + i])));
        for (int i = 0; i < 32; i++) result.push_back(std::round(vector[block + i] * 127 / greatest) * greatest / 127);
    }
    return result;
}

// The product of q4_0 and q8_1, whose blocks keep the sum of what they were made of: it is used where 8 is subtracted.
Doubles q4_0_product_of_bytes(const Words &weights, const Floats &vector)
{
    Doubles result = product(q4_0_numbers(weights), rounded(vector));
    Floats lost = rounded(vector);
    for (size_t i = 0; i < vector.size(); i++) lost[i] -= vector[i];
    for (size_t block = 0; block * 9 < weights.size(); block++)
        for (int i = 0; i < 32; i++)
            result[block * 32 / vector.size()] += 8 * half(weights[block * 9]) * lost[(block * 32 + i) % vector.size()];
    return result;
}

// For each token the product of its expert's matrix and the input of the token, times the weight of the token.
Doubles products_of_experts(const Floats &input, const Floats &weights, const std::vector<int32_t> &tokens,
                            const std::vector<int32_t> &offsets, const Floats &shares, long rows, long columns)
{
    Doubles result(tokens.size() * rows);
    for (size_t expert = 0; expert + 1 < offsets.size(); expert++)
        for (long i = offsets[expert]; i < offsets[expert + 1]; i++)
            for (long row = 0; row < rows; row++) {
                double sum = 0;
                for (long k = 0; k < columns; k++)
                    sum += double(input[tokens[i] * columns + k]) * weights[(expert * rows + row) * columns + k];
                result[tokens[i] * rows + row] = sum * shares[tokens[i]];
            }
    return result;
}

// Where the tokens of each expert begin, with the number of each expert's tokens rounded up to whole blocks, and the end.
std::vector<int32_t> padded_offsets(const std::vector<int32_t> &experts_of_tokens, long experts, long block)
{
    std::vector<int32_t> result(experts + 1);
    for (long expert = 0; expert < experts; expert++) {
        long count = std::count(experts_of_tokens.begin(), experts_of_tokens.end(), expert);
        result[expert + 1] = result[expert] + (count + block - 1) / block * block;
    }
    return result;
}

// The expert of each block of tokens, and -1 for blocks without.
std::vector<int32_t> experts_of_blocks(const std::vector<int32_t> &experts_of_tokens, long experts, long block, long blocks)
{
    std::vector<int32_t> result, offsets = padded_offsets(experts_of_tokens, experts, block);
    for (long expert = 0; expert < experts; expert++) result.resize(offsets[expert + 1] / block, expert);
    result.resize(blocks, -1);
    return result;
}
