// SPDX-License-Identifier: MIT OR Apache-2.0
// What the kernels of nerfacc must compute, in f64 and from the definitions.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Longs = std::vector<int64_t>;

struct Passage {
    bool hits;
    double entry, exit;
};

// Where rays are between the planes of a box along all axes, from the distance 0.1 to 5; distances are -1 without a hit.
static std::vector<Passage> passages(const Floats &origins, const Floats &directions, const Floats &corners)
{
    std::vector<Passage> result;
    for (size_t ray = 0; ray < origins.size(); ray += 3)
        for (size_t box = 0; box < corners.size(); box += 6) {
            double entry = -INFINITY, exit = INFINITY;
            for (int axis = 0; axis < 3; axis++) {
                double one = (double(corners[box + axis]) - origins[ray + axis]) / directions[ray + axis];
                double other = (double(corners[box + 3 + axis]) - origins[ray + axis]) / directions[ray + axis];
                entry = std::max(entry, std::min(one, other)), exit = std::min(exit, std::max(one, other));
            }
            bool hits = entry <= exit && exit > 0;
            result.push_back({hits, hits ? std::max(entry, 0.1) : -1, hits ? std::min(exit, 5.0) : -1});
        }
    return result;
}

std::vector<uint8_t> hits(const Floats &origins, const Floats &directions, const Floats &corners)
{
    std::vector<uint8_t> result;
    for (auto &passage : passages(origins, directions, corners)) result.push_back(passage.hits);
    return result;
}

Doubles entries(const Floats &origins, const Floats &directions, const Floats &corners)
{
    Doubles result;
    for (auto &passage : passages(origins, directions, corners)) result.push_back(passage.entry);
    return result;
}

Doubles exits(const Floats &origins, const Floats &directions, const Floats &corners)
{
    Doubles result;
    for (auto &passage : passages(origins, directions, corners)) result.push_back(passage.exit);
    return result;
}

// The sum of the samples of a ray up to each of them, itself included.
Doubles running_sums(const Floats &input, long samples)
{
    Doubles result;
    double sum = 0;
    for (size_t i = 0; i < input.size(); i++) {
        sum = (i % samples ? sum : 0) + input[i];
        result.push_back(sum);
    }
    return result;
}

// The ray that each sample belongs to, where the samples of each ray begin at `starts`.
Longs rays_of_samples(const Longs &starts, long samples)
{
    Longs result;
    for (size_t ray = 0; ray + 1 < starts.size(); ray++) result.resize(starts[ray + 1], ray);
    result.resize(samples, starts.size() - 2);
    return result;
}

// The point that a lens with these coefficients moves to each pixel: each step moves it back by what it misses the pixel.
Doubles undistorted(const Floats &pixels, const Floats &coefficients)
{
    Doubles result;
    for (size_t n = 0; n * 2 < pixels.size(); n++) {
        const float *k = &coefficients[n * 5];
        double u = pixels[n * 2], v = pixels[n * 2 + 1], x = u, y = v;
        for (int step = 0; step < 200; step++) {
            double r = x * x + y * y, radial = 1 + k[0] * r + k[1] * r * r + k[4] * r * r * r;
            double distorted_x = x * radial + 2 * k[2] * x * y + k[3] * (r + 2 * x * x);
            double distorted_y = y * radial + 2 * k[3] * x * y + k[2] * (r + 2 * y * y);
            x += u - distorted_x, y += v - distorted_y;
        }
        result.push_back(x), result.push_back(y);
    }
    return result;
}
