// SPDX-License-Identifier: MIT OR Apache-2.0
// What the kernels of the gallery must compute, in f64 and from the definitions: nothing here follows a kernel's order of
// work.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Numbers = std::vector<uint32_t>;

// Each row over the root of the mean of its squares plus 1e-5, times a weight of each column.
Doubles rms_norm(const Floats &input, const Floats &weight, long columns)
{
    Doubles result;
    for (size_t row = 0; row < input.size(); row += columns) {
        double squares = 0;
        for (long i = 0; i < columns; i++) squares += double(input[row + i]) * input[row + i];
        double root = std::sqrt(squares / columns + 1e-5);
        for (long i = 0; i < columns; i++) result.push_back(input[row + i] / root * weight[i]);
    }
    return result;
}

// Each element times the logistic function of it.
Doubles silu(const Floats &input)
{
    Doubles result;
    for (double x : input) result.push_back(x / (1 + std::exp(-x)));
    return result;
}

// The elements of `chosen` where the mask is not 0, and else those of `other`.
Floats selection(const std::vector<uint8_t> &mask, const Floats &chosen, const Floats &other)
{
    Floats result = other;
    for (size_t i = 0; i < mask.size(); i++)
        if (mask[i]) result[i] = chosen[i];
    return result;
}

Doubles row_sums(const Floats &input, long columns)
{
    Doubles result;
    for (auto row = input.begin(); row != input.end(); row += columns)
        result.push_back(std::accumulate(row, row + columns, 0.0));
    return result;
}

Floats row_maxima(const Floats &input, long columns)
{
    Floats result;
    for (auto row = input.begin(); row != input.end(); row += columns)
        result.push_back(*std::max_element(row, row + columns));
    return result;
}

// The column of the greatest element of each row.
Numbers places_of_row_maxima(const Floats &input, long columns)
{
    Numbers result;
    for (auto row = input.begin(); row != input.end(); row += columns)
        result.push_back(std::max_element(row, row + columns) - row);
    return result;
}

// The columns of each row in ascending order of their elements, which are distinct.
Numbers order_of_rows(const Numbers &input, long columns)
{
    Numbers result(input.size());
    for (size_t row = 0; row < input.size(); row += columns) {
        uint32_t *order = &result[row];
        std::iota(order, order + columns, 0);
        std::sort(order, order + columns, [&](uint32_t a, uint32_t b) { return input[row + a] < input[row + b]; });
    }
    return result;
}

Numbers reverse_order_of_rows(const Numbers &input, long columns)
{
    Numbers result = order_of_rows(input, columns);
    for (auto row = result.begin(); row != result.end(); row += columns) std::reverse(row, row + columns);
    return result;
}

// Rotates pairs of elements of each token, which are `apart` from each other, by the angle of the pair.
static Doubles rotated(const Floats &input, const Floats &cosines, const Floats &sines, long size, long apart)
{
    Doubles result(input.size());
    long pairs = size / 2;
    for (size_t head_and_token = 0; head_and_token * size < input.size(); head_and_token++)
        for (long pair = 0; pair < pairs; pair++) {
            size_t first = head_and_token * size + (apart == 1 ? 2 * pair : pair), second = first + apart;
            size_t angle = (head_and_token * pairs + pair) % cosines.size();
            double c = cosines[angle], s = sines[angle];
            result[first] = input[first] * c - input[second] * s;
            result[second] = input[first] * s + input[second] * c;
        }
    return result;
}

Doubles rotated_halves(const Floats &input, const Floats &cosines, const Floats &sines, long size)
{
    return rotated(input, cosines, sines, size, size / 2);
}

Doubles rotated_neighbours(const Floats &input, const Floats &cosines, const Floats &sines, long size)
{
    return rotated(input, cosines, sines, size, 1);
}

// The rows of a table that the ids name.
Floats selected_rows(const Floats &table, const Numbers &ids, long width)
{
    Floats result;
    for (uint32_t id : ids) result.insert(result.end(), &table[id * width], &table[id * width] + width);
    return result;
}

// For each id, the element of its own column in the row that it names.
Floats gathered(const Floats &table, const Numbers &ids, long width)
{
    Floats result;
    for (size_t i = 0; i < ids.size(); i++) result.push_back(table[ids[i] * width + i % width]);
    return result;
}

// The sums with each element of the input added in its own column, to the row that its id names.
Doubles scattered_sums(const Floats &sums, const Floats &input, const Numbers &ids, long width)
{
    Doubles result(sums.begin(), sums.end());
    for (size_t i = 0; i < ids.size(); i++) result[ids[i] * width + i % width] += input[i];
    return result;
}

// The first `row` elements of every `row + gap`.
Floats without_gaps(const Floats &input, long row, long gap)
{
    Floats result;
    for (size_t i = 0; i < input.size(); i++)
        if (long(i % (row + gap)) < row) result.push_back(input[i]);
    return result;
}
