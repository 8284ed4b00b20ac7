// SPDX-License-Identifier: MIT OR Apache-2.0
// What the kernels of the gallery must compute, in f64 and from the definitions: nothing here follows a kernel's order of
// work. One file, so that one consent covers all.
#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Ints = std::vector<int>;

// The values of a function of each index below n, worked out on all cores.
template <typename Function>
static Doubles each(size_t n, Function value_at)
{
    Doubles values(n);
    size_t cores = std::max(1u, std::thread::hardware_concurrency()), part = n / cores + 1;
    std::vector<std::thread> threads;
    for (size_t from = 0; from < n; from += part)
        threads.emplace_back([&, from] {
            for (size_t i = from; i < std::min(n, from + part); i++) values[i] = value_at(i);
        });
    for (std::thread &thread : threads) thread.join();
    return values;
}

// Distances of places (latitude, longitude) from one place.
Doubles distances(const Floats &places, double latitude, double longitude)
{
    return each(places.size() / 2, [&](size_t i) {
        return std::hypot(places[2 * i] - latitude, places[2 * i + 1] - longitude);
    });
}

// Scores of the best alignments of all prefixes: the first row and column of `items` are given.
Ints alignment(const Ints &similarity, const Ints &items, long width, int penalty)
{
    Ints score = items;
    for (long y = 1; y < width; y++)
        for (long x = 1; x < width; x++) {
            int with_both = score[(y - 1) * width + x - 1] + similarity[y * width + x];
            int with_a_gap = std::max(score[(y - 1) * width + x], score[y * width + x - 1]) - penalty;
            score[y * width + x] = std::max(with_both, with_a_gap);
        }
    return score;
}

// Costs of the cheapest paths from the first row to each element of the last; a step leads at most one column aside.
Ints cheapest_paths(const Ints &start, const Ints &wall, long columns, long rows)
{
    Ints cost = start;
    for (long row = 0; row + 1 < rows; row++) {
        Ints next;
        for (long x = 0; x < columns; x++) {
            long left = std::max(x - 1, 0L), right = std::min(x + 1, columns - 1);
            next.push_back(wall[row * columns + x] + *std::min_element(&cost[left], &cost[right] + 1));
        }
        cost = next;
    }
    return cost;
}

// An image of n * n with its border repeated outside.
struct Image {
    Doubles elements;
    long n;
    double at(long y, long x) const
    {
        return elements[std::clamp(y, 0L, n - 1) * n + std::clamp(x, 0L, n - 1)];
    }
};

// A step of speckle-reducing anisotropic diffusion (Yu and Acton, 2002) of the image between a row before and one behind.
Doubles diffusion(const Floats &padded, long n, double lambda, double q0_squared)
{
    Image image{Doubles(padded.begin() + n, padded.end() - n), n};
    Image coefficient{{}, n};
    for (long y = 0; y < n; y++)
        for (long x = 0; x < n; x++) {
            double here = image.at(y, x), gradient = 0, laplacian = 0;
            for (double there : {image.at(y - 1, x), image.at(y + 1, x), image.at(y, x - 1), image.at(y, x + 1)}) {
                gradient += std::pow((there - here) / here, 2);
                laplacian += (there - here) / here;
            }
            double q_squared = (gradient / 2 - laplacian * laplacian / 16) / std::pow(1 + laplacian / 4, 2);
            double c = 1 / (1 + (q_squared - q0_squared) / (q0_squared * (1 + q0_squared)));
            coefficient.elements.push_back(std::clamp(c, 0.0, 1.0));
        }
    Doubles result(padded.begin(), padded.end());
    for (long y = 0; y < n; y++)
        for (long x = 0; x < n; x++) {
            double here = image.at(y, x), own = coefficient.at(y, x);
            double divergence = own * (image.at(y - 1, x) - here) + own * (image.at(y, x - 1) - here)
                + coefficient.at(y + 1, x) * (image.at(y + 1, x) - here)
                + coefficient.at(y, x + 1) * (image.at(y, x + 1) - here);
            result[(y + 1) * n + x] = here + lambda / 4 * divergence;
        }
    return result;
}

// Temperatures of a chip after steps of 0.1 s: each cell exchanges heat with its four neighbours and with the air.
Doubles temperatures(const Floats &before, const Floats &power, long n, long all_steps)
{
    const double capacity = 1, between_cells = 10, to_the_air = 100, air = 80, seconds = 0.1;
    Image chip{Doubles(before.begin(), before.end()), n};
    for (long step = 0; step < all_steps; step++) {
        Image next{{}, n};
        for (long y = 0; y < n; y++)
            for (long x = 0; x < n; x++) {
                double here = chip.at(y, x), heat = power[y * n + x] + (air - here) / to_the_air;
                for (double there : {chip.at(y - 1, x), chip.at(y + 1, x), chip.at(y, x - 1), chip.at(y, x + 1)})
                    heat += (there - here) / between_cells;
                next.elements.push_back(here + seconds / capacity * heat);
            }
        chip = next;
    }
    return chip.elements;
}

// The probability that a standard normal variable is below x.
static double normal_below(double x)
{
    return std::erfc(-x / std::sqrt(2.0)) / 2;
}

// Prices of European calls, or of puts (sign 1 or -1), by the formula of Black and Scholes.
static Doubles options(const Floats &price, const Floats &strike, const Floats &years, double rate, double volatility,
                       int sign)
{
    return each(price.size(), [&](size_t i) {
        double s = price[i], x = strike[i], t = years[i], spread = volatility * std::sqrt(t);
        double d1 = (std::log(s / x) + (rate + volatility * volatility / 2) * t) / spread, d2 = d1 - spread;
        return sign * (s * normal_below(sign * d1) - x * std::exp(-rate * t) * normal_below(sign * d2));
    });
}

Doubles calls(const Floats &price, const Floats &strike, const Floats &years, double rate, double volatility)
{
    return options(price, strike, years, rate, volatility, 1);
}

Doubles puts(const Floats &price, const Floats &strike, const Floats &years, double rate, double volatility)
{
    return options(price, strike, years, rate, volatility, -1);
}

// Causal attention: each token takes the values of itself and of those before it, weighted by softmax(q k / sqrt(size)).
Doubles attention(const Floats &qkv, long batch, long time, long heads, long channels)
{
    long size = channels / heads;
    Doubles result(batch * time * channels);
    for (long b = 0; b < batch; b++)
        for (long h = 0; h < heads; h++)
            for (long t = 0; t < time; t++) {
                // `part` is 0 for queries, 1 for keys, 2 for values.
                auto of = [&](long token, long part) { return &qkv[((b * time + token) * 3 + part) * channels + h * size]; };
                Doubles weights;
                double sum = 0;
                for (long other = 0; other <= t; other++) {
                    double product = 0;
                    for (long i = 0; i < size; i++) product += double(of(t, 0)[i]) * of(other, 1)[i];
                    weights.push_back(std::exp(product / std::sqrt(double(size))));
                    sum += weights.back();
                }
                for (long other = 0; other <= t; other++)
                    for (long i = 0; i < size; i++)
                        result[(b * time + t) * channels + h * size + i] += weights[other] / sum * of(other, 2)[i];
            }
    return result;
}

// The first moments, second moments and parameters after a step of AdamW (Loshchilov and Hutter, 2019).
Doubles first_moments(const Floats &grads, const Floats &m)
{
    return each(m.size(), [&](size_t i) { return 0.9 * m[i] + 0.1 * grads[i]; });
}

Doubles second_moments(const Floats &grads, const Floats &v)
{
    return each(v.size(), [&](size_t i) { return 0.999 * v[i] + 0.001 * grads[i] * grads[i]; });
}

// After `steps` steps, the last of which is this one.
Doubles parameters(const Floats &params, const Floats &grads, const Floats &m, const Floats &v, long steps, double rate,
                   double decay)
{
    Doubles first = first_moments(grads, m), second = second_moments(grads, v);
    double first_bias = 1 - std::pow(0.9, steps), second_bias = 1 - std::pow(0.999, steps);
    return each(params.size(), [&](size_t i) {
        double mean = first[i] / first_bias, square = second[i] / second_bias;
        return params[i] - rate * (mean / (std::sqrt(square) + 1e-8) + decay * params[i]);
    });
}

// Scalar products of pairs of vectors of n elements.
Doubles products(const Floats &a, const Floats &b, long n)
{
    Doubles result(a.size() / n);
    for (size_t i = 0; i < a.size(); i++) result[i / n] += double(a[i]) * b[i];
    return result;
}

// The Walsh transform in natural order by its recursion: W(halves) = (W(first) + W(second), W(first) - W(second)).
Doubles walsh(const Floats &signal)
{
    if (signal.size() == 1) return {signal[0]};
    auto middle = signal.begin() + signal.size() / 2;
    Doubles first = walsh(Floats(signal.begin(), middle)), second = walsh(Floats(middle, signal.end()));
    Doubles result = first;
    for (size_t i = 0; i < first.size(); i++) result[i] += second[i];
    for (size_t i = 0; i < first.size(); i++) result.push_back(first[i] - second[i]);
    return result;
}

// Where each key of a permutation is.
std::vector<unsigned> places(const std::vector<unsigned> &keys)
{
    std::vector<unsigned> result(keys.size());
    for (size_t i = 0; i < keys.size(); i++) result[keys[i]] = unsigned(i);
    return result;
}

// The x with A x = b, by Gauss's elimination: the diagonal dominates, so no row has to change its place.
Doubles solution(const Floats &matrix, const Doubles &b, long n)
{
    Doubles a(matrix.begin(), matrix.end()), x = b;
    for (long pivot = 0; pivot < n; pivot++)
        for (long row = pivot + 1; row < n; row++) {
            double factor = a[row * n + pivot] / a[pivot * n + pivot];
            for (long column = pivot; column < n; column++) a[row * n + column] -= factor * a[pivot * n + column];
            x[row] -= factor * x[pivot];
        }
    for (long row = n - 1; row >= 0; row--) {
        for (long column = row + 1; column < n; column++) x[row] -= a[row * n + column] * x[column];
        x[row] /= a[row * n + row];
    }
    return x;
}
