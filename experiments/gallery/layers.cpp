// SPDX-License-Identifier: MIT OR Apache-2.0
// Layers of language models and elementwise functions, in f64 and from the definitions.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Numbers = std::vector<uint32_t>;
using Words = std::vector<uint16_t>;

Doubles function(const Floats &input, const std::string &op)
{
    Doubles result;
    for (double x : input)
        result.push_back(op == "log"    ? std::log(x)
                         : op == "sqrt" ? std::sqrt(x)
                         : op == "sin"  ? std::sin(x)
                         : op == "tanh" ? std::tanh(x)
                         : op == "erf"  ? std::erf(x)
                                        : 1 / x);
    return result;
}

Doubles powers(const Floats &input, double power)
{
    Doubles result;
    for (double x : input) result.push_back(std::pow(x, power));
    return result;
}

// Positive numbers, and `scale` times what the exponential of others is below 1.
Doubles exponential_units(const Floats &around, double scale)
{
    Doubles result;
    for (double x : around) result.push_back(x > 0 ? x : scale * std::expm1(x));
    return result;
}

std::vector<uint8_t> comparison(const Numbers &left, const Numbers &right, const std::string &op)
{
    std::vector<uint8_t> result;
    for (size_t i = 0; i < left.size(); i++) {
        bool less = left[i] < right[i], same = left[i] == right[i];
        result.push_back(op == "eq"   ? same
                         : op == "ne" ? !same
                         : op == "lt" ? less
                         : op == "le" ? less || same
                         : op == "gt" ? !less && !same
                                      : !less);
    }
    return result;
}

// The output with 2.5 in the first and every second row after it.
Floats constant_rows(const Floats &output, long columns)
{
    Floats result = output;
    for (size_t i = 0; i < result.size(); i++)
        if (i / columns % 2 == 0) result[i] = 2.5;
    return result;
}

// The sums with each row of the input added to the row that its id names.
Doubles added_rows(const Floats &sums, const Floats &input, const Numbers &ids, long width)
{
    Doubles result(sums.begin(), sums.end());
    for (size_t i = 0; i < input.size(); i++) result[ids[i / width] * width + i % width] += input[i];
    return result;
}

// Each head over the root of the mean of its squares plus 1e-5, times weights of its own.
Doubles normalised_heads(const Floats &input, const Floats &weight, long size)
{
    Doubles result;
    for (size_t head = 0; head < input.size(); head += size) {
        double squares = 0;
        for (long i = 0; i < size; i++) squares += double(input[head + i]) * input[head + i];
        for (long i = 0; i < size; i++)
            result.push_back(input[head + i] / std::sqrt(squares / size + 1e-5) * weight[(head + i) % weight.size()]);
    }
    return result;
}

// Rotates pairs of elements of each head by the angles of its token, which has `past` tokens before the first.
static Doubles rotated(const Floats &state, const Floats &sines, const Floats &cosines, long heads, long size, long past,
                       bool halves)
{
    Doubles result(state.size());
    for (size_t head = 0; head * size < state.size(); head++) {
        long angles = (past + head / heads) * size;
        for (long pair = 0; pair < size / 2; pair++) {
            long first = head * size + (halves ? pair : 2 * pair), second = first + (halves ? size / 2 : 1);
            // Neighbours have an angle each, halves share that of the first.
            long one = angles + (halves ? pair : 2 * pair), other = halves ? one : one + 1;
            result[first] = double(state[first]) * cosines[one] - double(state[second]) * sines[one];
            result[second] = double(state[second]) * cosines[other] + double(state[first]) * sines[other];
        }
    }
    return result;
}

Doubles rotated_halves_of_heads(const Floats &state, const Floats &sines, const Floats &cosines, long heads, long size,
                                long past)
{
    return rotated(state, sines, cosines, heads, size, past, true);
}

Doubles rotated_neighbours_of_heads(const Floats &state, const Floats &sines, const Floats &cosines, long heads, long size,
                                    long past)
{
    return rotated(state, sines, cosines, heads, size, past, false);
}

// The sums with the vector added to each row.
Doubles biased(const Floats &sums, const Floats &vector)
{
    Doubles result;
    for (size_t i = 0; i < sums.size(); i++) result.push_back(double(sums[i]) + vector[i % vector.size()]);
    return result;
}

Doubles limited(const Floats &logits, double limit)
{
    Doubles result;
    for (double x : logits) result.push_back(limit * std::tanh(x / limit));
    return result;
}

// Numbers of f16 without the lower 8 of the 10 bits of their fraction.
Doubles upper_bytes(const Floats &input)
{
    Doubles result;
    for (double x : input) {
        int exponent;
        double fraction = std::frexp(std::abs(x), &exponent);
        // From 2^-14 on, numbers have a bit before the fraction; below, the fraction has fixed places.
        int places = std::max(exponent - 3, -16);
        result.push_back(std::copysign(std::ldexp(std::floor(std::ldexp(fraction, exponent - places)), places), x));
    }
    return result;
}

// Columns of numbers with a few bits each, one after the other from the lowest bit on, in words of 32 bits.
static Numbers packed(const Words &numbers, long columns, int bits)
{
    Numbers result(numbers.size() * bits / 32);
    for (size_t i = 0; i < numbers.size(); i++)
        for (int bit = 0; bit < bits; bit++) {
            size_t place = i / columns * bits + bit;
            result[place / 32 * columns + i % columns] |= uint32_t(numbers[i] >> bit & 1) << place % 32;
        }
    return result;
}

Numbers packed4(const Words &numbers4, long columns) { return packed(numbers4, columns, 4); }

Numbers packed5(const Words &numbers5, long columns) { return packed(numbers5, columns, 5); }

// The nearest of 16 numbers around 8 in units of the scale of each column.
std::vector<uint16_t> rounded_numbers(const Floats &weights, const Floats &scales)
{
    Words result;
    for (size_t i = 0; i < weights.size(); i++)
        result.push_back(std::clamp(std::nearbyint(double(weights[i]) / scales[i % scales.size()]) + 8, 0.0, 15.0));
    return result;
}

Doubles rounded_weights(const Floats &weights, const Floats &scales)
{
    Doubles result;
    Words numbers = rounded_numbers(weights, scales);
    for (size_t i = 0; i < weights.size(); i++) result.push_back((numbers[i] - 8.0) * scales[i % scales.size()]);
    return result;
}

// The first half of each row times its logistic function, times the second half.
Doubles gated(const Floats &input, long width)
{
    Doubles result;
    for (size_t row = 0; row < input.size(); row += 2 * width)
        for (long i = 0; i < width; i++) {
            double x = input[row + i];
            result.push_back(x / (1 + std::exp(-x)) * input[row + width + i]);
        }
    return result;
}

// The attention to two sets of keys, of what each set gives and the logarithm to base 2 of the sum of its weights.
Doubles merged_values(const Floats &values_a, const Floats &logs_a, const Floats &values_b, const Floats &logs_b, long size)
{
    Doubles result;
    for (size_t i = 0; i < values_a.size(); i++) {
        double a = std::exp2(logs_a[i / size]), b = std::exp2(logs_b[i / size]);
        result.push_back((a * values_a[i] + b * values_b[i]) / (a + b));
    }
    return result;
}

Doubles merged_logs(const Floats &logs_a, const Floats &logs_b)
{
    Doubles result;
    for (size_t i = 0; i < logs_a.size(); i++) result.push_back(std::log2(std::exp2(logs_a[i]) + std::exp2(logs_b[i])));
    return result;
}

// The greatest probabilities of each row whose sum is at least `share`, over their sum; 0 for the others.
Doubles likeliest(const Floats &probabilities, long columns, double share)
{
    Doubles result;
    for (auto row = probabilities.begin(); row != probabilities.end(); row += columns) {
        Doubles sorted(row, row + columns);
        std::sort(sorted.rbegin(), sorted.rend());
        double sum = 0;
        size_t kept = 0;
        while (kept < sorted.size() && sum < share) sum += sorted[kept++];
        double least = sorted[kept - 1];
        for (long i = 0; i < columns; i++) result.push_back(row[i] < least ? 0 : row[i] / sum);
    }
    return result;
}
