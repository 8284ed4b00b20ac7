// SPDX-License-Identifier: MIT OR Apache-2.0
// What the kernels of gsplat must compute, in f64 and from the definitions.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Numbers = std::vector<int32_t>;

struct Matrix {
    double at[3][3];
};

// The rotation of a quaternion (w, x, y, z) of any length.
static Matrix rotation(const float *q)
{
    double length = std::sqrt(double(q[0]) * q[0] + double(q[1]) * q[1] + double(q[2]) * q[2] + double(q[3]) * q[3]);
    double w = q[0] / length, x = q[1] / length, y = q[2] / length, z = q[3] / length;
    return {{{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
             {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
             {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)}}};
}

// The covariance of a Gaussian with these deviations along the axes that a quaternion rotates; with `power` -2 its inverse.
static Matrix covariance(const float *quaternion, const float *scale, double power)
{
    Matrix r = rotation(quaternion), result = {};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++) result.at[i][j] += r.at[i][k] * r.at[j][k] * std::pow(scale[k], power);
    return result;
}

static Doubles matrices(const Floats &quats, const Floats &scales, double power)
{
    Doubles result;
    for (size_t n = 0; n * 4 < quats.size(); n++) {
        Matrix m = covariance(&quats[n * 4], &scales[n * 3], power);
        result.insert(result.end(), &m.at[0][0], &m.at[0][0] + 9);
    }
    return result;
}

Doubles covariances(const Floats &quats, const Floats &scales) { return matrices(quats, scales, 2); }

Doubles precisions(const Floats &quats, const Floats &scales) { return matrices(quats, scales, -2); }

// The pixels of points in front of a pinhole camera.
Doubles projected_means(const Floats &means, double focus, double centre)
{
    Doubles result;
    for (size_t n = 0; n < means.size(); n += 3)
        for (int i = 0; i < 2; i++) result.push_back(focus * means[n + i] / means[n + 2] + centre);
    return result;
}

// The covariances of the pixels, with the projection linear around the mean.
Doubles projected_covariances(const Floats &means, const Floats &quats, const Floats &scales, double focus)
{
    Doubles result;
    for (size_t n = 0; n * 3 < means.size(); n++) {
        double x = means[n * 3], y = means[n * 3 + 1], z = means[n * 3 + 2];
        Matrix c = covariance(&quats[n * 4], &scales[n * 3], 2);
        double jacobian[2][3] = {{focus / z, 0, -focus * x / (z * z)}, {0, focus / z, -focus * y / (z * z)}};
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++) {
                double sum = 0;
                for (int k = 0; k < 3; k++)
                    for (int l = 0; l < 3; l++) sum += jacobian[i][k] * c.at[k][l] * jacobian[j][l];
                result.push_back(sum);
            }
    }
    return result;
}

// The associated Legendre polynomial with the phase of Condon and Shortley, by recursion over the degree.
static double legendre(int degree, int order, double z)
{
    double first = 1;
    for (int m = 1; m <= order; m++) first *= -(2 * m - 1) * std::sqrt(1 - z * z);
    double before = 0;
    for (int l = order + 1; l <= degree; l++) {
        double next = ((2 * l - 1) * z * first - (l + order - 1) * before) / (l - order);
        before = first, first = next;
    }
    return first;
}

static double harmonic(int degree, int order, double x, double y, double z)
{
    int m = std::abs(order);
    double norm = (2 * degree + 1) / (4 * M_PI) * std::tgamma(degree - m + 1) / std::tgamma(degree + m + 1);
    double value = std::sqrt(norm) * legendre(degree, m, z), angle = std::atan2(y, x);
    if (order == 0) return value;
    return std::sqrt(2.0) * value * (order > 0 ? std::cos(m * angle) : std::sin(m * angle));
}

// The sum of the real spherical harmonics in the direction of each point, times the coefficients of three colours.
Doubles harmonic_colours(const Floats &directions, const Floats &coefficients, long degree)
{
    long count = (degree + 1) * (degree + 1);
    Doubles result;
    for (size_t n = 0; n * 3 < directions.size(); n++) {
        double x = directions[n * 3], y = directions[n * 3 + 1], z = directions[n * 3 + 2];
        double length = std::sqrt(x * x + y * y + z * z), colour[3] = {};
        for (int l = 0; l <= degree; l++)
            for (int m = -l; m <= l; m++) {
                double value = harmonic(l, m, x / length, y / length, z / length);
                for (int c = 0; c < 3; c++) colour[c] += value * coefficients[(n * count + l * l + l + m) * 3 + c];
            }
        result.insert(result.end(), colour, colour + 3);
    }
    return result;
}

// How many tiles the square around each point covers, of those of the image.
Numbers covered_tiles(const Floats &means, const Numbers &radii, long tile, long tiles)
{
    Numbers result;
    // In float as the kernel: where a sum is rounded to the edge of a tile, the tile behind it is not covered.
    auto tile_of = [&](float mean, float radius, bool up) {
        float in_tiles = mean / tile + radius / tile;
        return std::clamp<long>(up ? std::ceil(in_tiles) : std::floor(in_tiles), 0, tiles);
    };
    for (size_t n = 0; n < means.size(); n += 2) {
        long covered = 1;
        for (int i = 0; i < 2; i++)
            covered *= tile_of(means[n + i], radii[n + i], true) - tile_of(means[n + i], -radii[n + i], false);
        result.push_back(covered);
    }
    return result;
}

// The image of the Gaussians of each tile, from front to back: three colours and the opacity of each pixel.
static std::vector<Doubles> image(const Floats &means, const Floats &conics, const Floats &colours, const Floats &opacities,
                                  const Numbers &order, long width, long tile, long per_tile)
{
    std::vector<Doubles> pixels;
    for (long y = 0; y < width; y++)
        for (long x = 0; x < width; x++) {
            long first = (y / tile * (width / tile) + x / tile) * per_tile;
            double left = 1;
            Doubles pixel(4);
            for (long i = first; i < first + per_tile; i++) {
                long n = order[i];
                double dx = means[n * 2] - (x + 0.5), dy = means[n * 2 + 1] - (y + 0.5);
                const float *conic = &conics[n * 3];
                double sigma = (conic[0] * dx * dx + conic[2] * dy * dy) / 2 + conic[1] * dx * dy;
                double alpha = std::min(0.999, opacities[n] * std::exp(-sigma));
                if (sigma < 0 || alpha < 1.0 / 255) continue;
                if (left * (1 - alpha) <= 1e-4) break;
                for (int c = 0; c < 3; c++) pixel[c] += alpha * left * colours[n * 3 + c];
                left *= 1 - alpha;
            }
            pixel[3] = 1 - left;
            pixels.push_back(pixel);
        }
    return pixels;
}

Doubles rendered_colours(const Floats &means, const Floats &conics, const Floats &colours, const Floats &opacities,
                         const Numbers &order, long width, long tile, long per_tile)
{
    Doubles result;
    for (auto &pixel : image(means, conics, colours, opacities, order, width, tile, per_tile))
        result.insert(result.end(), pixel.begin(), pixel.begin() + 3);
    return result;
}

Doubles rendered_opacities(const Floats &means, const Floats &conics, const Floats &colours, const Floats &opacities,
                           const Numbers &order, long width, long tile, long per_tile)
{
    Doubles result;
    for (auto &pixel : image(means, conics, colours, opacities, order, width, tile, per_tile)) result.push_back(pixel[3]);
    return result;
}

// A step of Adam without the correction of the bias.
Doubles adam(const Floats &param, const Floats &gradient, const Floats &mean, const Floats &square, double rate)
{
    Doubles result;
    for (size_t i = 0; i < param.size(); i++) {
        double m = 0.9 * mean[i] + 0.1 * gradient[i], v = 0.999 * square[i] + 0.001 * gradient[i] * gradient[i];
        result.push_back(param[i] - rate * m / (std::sqrt(v) + 1e-8));
    }
    return result;
}

// The opacity of each of `ratio` Gaussians that together replace one: (1 - new)^ratio = 1 - old.
Doubles shared_opacities(const Floats &opacities, const Numbers &ratios)
{
    Doubles result;
    for (size_t i = 0; i < opacities.size(); i++) result.push_back(1 - std::pow(1 - double(opacities[i]), 1.0 / ratios[i]));
    return result;
}

// Their scales, by equation 9 of the paper on 3D Gaussian splatting as Markov chain Monte Carlo.
Doubles shared_scales(const Floats &opacities, const Floats &scales, const Numbers &ratios)
{
    Doubles result;
    for (size_t n = 0; n < opacities.size(); n++) {
        double opacity = 1 - std::pow(1 - double(opacities[n]), 1.0 / ratios[n]), sum = 0;
        for (int i = 1; i <= ratios[n]; i++)
            for (int k = 0; k < i; k++) {
                double binomial = std::tgamma(i) / (std::tgamma(k + 1) * std::tgamma(i - k));
                sum += binomial * std::pow(-1, k) / std::sqrt(k + 1.0) * std::pow(opacity, k + 1);
            }
        for (int c = 0; c < 3; c++) result.push_back(opacities[n] / sum * scales[n * 3 + c]);
    }
    return result;
}
