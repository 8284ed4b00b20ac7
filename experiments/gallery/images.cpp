// SPDX-License-Identifier: MIT OR Apache-2.0
// Convolutions, pooling and scaling of images, in f64 and from the definitions. Arrays are row-major: images, channels,
// rows, columns; filters have output channels first.
#include <algorithm>
#include <cmath>
#include <vector>

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

// An image that is 0 outside, of one channel after the other.
struct Image {
    const Floats &data;
    long rows, columns;

    double at(long channel, long row, long column) const
    {
        bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
        return inside ? data[(channel * rows + row) * columns + column] : 0;
    }
};

// What a filter gives at the places that `stride` leaves, with `padding` zeros around the image.
static Doubles convolved(const Image &image, const Floats &filter, long from, long to, long height, long width,
                         long stride, long padding, long down, long dilation)
{
    Doubles result;
    long reach_down = (height - 1) * dilation + 1, reach = (width - 1) * dilation + 1;
    for (long out = 0; out < to; out++)
        for (long row = -down; row + reach_down <= image.rows + down; row += stride)
            for (long column = -padding; column + reach <= image.columns + padding; column += stride) {
                double sum = 0;
                for (long in = 0; in < from; in++)
                    for (long y = 0; y < height; y++)
                        for (long x = 0; x < width; x++)
                            sum += filter[((out * from + in) * height + y) * width + x]
                                * image.at(in, row + y * dilation, column + x * dilation);
                result.push_back(sum);
            }
    return result;
}

Doubles convolution_of_lines(const Floats &input, const Floats &filter, long from, long to, long length, long taps,
                             long stride, long padding, long dilation)
{
    return convolved({input, 1, length}, filter, from, to, 1, taps, stride, padding, 0, dilation);
}

Doubles convolution_of_images(const Floats &input, const Floats &filter, long from, long to, long rows, long columns,
                              long taps, long stride, long padding)
{
    return convolved({input, rows, columns}, filter, from, to, taps, taps, stride, padding, padding, 1);
}

// Every pixel spreads the filter, `stride` apart, and `padding` pixels are cut off at each edge. The filter has input
// channels first.
static Doubles spread(const Floats &input, const Floats &filter, long from, long to, long rows, long columns, long height,
                      long width, long stride, long padding, long down)
{
    long high = (rows - 1) * stride + height - 2 * down, wide = (columns - 1) * stride + width - 2 * padding;
    Doubles result(to * high * wide);
    for (long in = 0; in < from; in++)
        for (long out = 0; out < to; out++)
            for (long row = 0; row < rows; row++)
                for (long column = 0; column < columns; column++)
                    for (long y = 0; y < height; y++)
                        for (long x = 0; x < width; x++) {
                            long to_row = row * stride + y - down, to_column = column * stride + x - padding;
                            if (to_row < 0 || to_row >= high || to_column < 0 || to_column >= wide) continue;
                            result[(out * high + to_row) * wide + to_column]
                                += double(input[(in * rows + row) * columns + column])
                                * filter[((in * to + out) * height + y) * width + x];
                        }
    return result;
}

Doubles transposed_convolution_of_lines(const Floats &input, const Floats &filter, long from, long to, long length,
                                        long taps, long stride, long padding)
{
    return spread(input, filter, from, to, 1, length, 1, taps, stride, padding, 0);
}

Doubles transposed_convolution_of_images(const Floats &input, const Floats &filter, long from, long to, long rows,
                                         long columns, long taps, long stride, long padding)
{
    return spread(input, filter, from, to, rows, columns, taps, taps, stride, padding, padding);
}

// The surroundings of each place that a filter would be at, one after the other.
Floats surroundings(const Floats &input, long from, long rows, long columns, long taps, long stride, long padding)
{
    Image image{input, rows, columns};
    Floats result;
    for (long row = -padding; row + taps <= rows + padding; row += stride)
        for (long column = -padding; column + taps <= columns + padding; column += stride)
            for (long in = 0; in < from; in++)
                for (long y = 0; y < taps; y++)
                    for (long x = 0; x < taps; x++) result.push_back(image.at(in, row + y, column + x));
    return result;
}

// The sums of overlapping pieces of `taps` elements, which begin `stride` apart. Pieces of one place follow each other.
Doubles overlapped(const Floats &input, long to, long length, long taps, long stride)
{
    long reach = (length - 1) * stride + taps;
    Doubles result(to * reach);
    for (long place = 0; place < length; place++)
        for (long out = 0; out < to; out++)
            for (long x = 0; x < taps; x++)
                result[out * reach + place * stride + x] += input[(place * to + out) * taps + x];
    return result;
}

static Doubles pooled(const Floats &input, long channels, long rows, long columns, long taps, long stride, bool mean)
{
    Image image{input, rows, columns};
    Doubles result;
    for (long channel = 0; channel < channels; channel++)
        for (long row = 0; row + taps <= rows; row += stride)
            for (long column = 0; column + taps <= columns; column += stride) {
                double sum = 0, greatest = -INFINITY;
                for (long y = 0; y < taps; y++)
                    for (long x = 0; x < taps; x++) {
                        double value = image.at(channel, row + y, column + x);
                        sum += value, greatest = std::max(greatest, value);
                    }
                result.push_back(mean ? sum / (taps * taps) : greatest);
            }
    return result;
}

Doubles means_of_squares(const Floats &input, long channels, long rows, long columns, long taps, long stride)
{
    return pooled(input, channels, rows, columns, taps, stride, true);
}

Doubles maxima_of_squares(const Floats &input, long channels, long rows, long columns, long taps, long stride)
{
    return pooled(input, channels, rows, columns, taps, stride, false);
}

// Each pixel `scale` times in both directions.
Floats repeated_pixels(const Floats &input, long channels, long rows, long columns, long scale)
{
    Image image{input, rows, columns};
    Floats result;
    for (long channel = 0; channel < channels; channel++)
        for (long row = 0; row < rows * scale; row++)
            for (long column = 0; column < columns * scale; column++)
                result.push_back(image.at(channel, row / scale, column / scale));
    return result;
}

// A larger image, linear between the centres of the pixels and constant beyond the outermost.
Doubles interpolated_pixels(const Floats &input, long channels, long rows, long columns, long scale)
{
    Image image{input, rows, columns};
    Doubles result;
    for (long channel = 0; channel < channels; channel++)
        for (long row = 0; row < rows * scale; row++)
            for (long column = 0; column < columns * scale; column++) {
                double y = std::clamp((row + 0.5) / scale - 0.5, 0.0, rows - 1.0);
                double x = std::clamp((column + 0.5) / scale - 0.5, 0.0, columns - 1.0), sum = 0;
                for (long j = std::floor(y); j <= std::ceil(y); j++)
                    for (long i = std::floor(x); i <= std::ceil(x); i++)
                        sum += (1 - std::abs(y - j)) * (1 - std::abs(x - i)) * image.at(channel, j, i);
                result.push_back(sum);
            }
    return result;
}

// The maxima of squares of an image whose channels are together for each pixel.
Floats maxima_with_channels_last(const Floats &input, long channels, long rows, long columns, long taps, long stride)
{
    Floats result;
    for (long row = 0; row + taps <= rows; row += stride)
        for (long column = 0; column + taps <= columns; column += stride)
            for (long channel = 0; channel < channels; channel++) {
                float greatest = -INFINITY;
                for (long y = row; y < row + taps; y++)
                    for (long x = column; x < column + taps; x++)
                        greatest = std::max(greatest, input[(y * columns + x) * channels + channel]);
                result.push_back(greatest);
            }
    return result;
}

// The groups of channels of each image without their mean, over the root of their variance plus 1e-5, times a weight and
// plus a bias of each channel. The channels of a pixel are together.
Doubles normalised_groups(const Floats &input, const Floats &weight, const Floats &bias, long pixels, long channels,
                          long groups)
{
    Doubles result;
    long of_group = channels / groups;
    for (size_t at = 0; at < input.size(); at += pixels * channels) {
        Doubles sums(groups), squares(groups);
        for (long i = 0; i < pixels * channels; i++) sums[i % channels / of_group] += input[at + i];
        for (double &sum : sums) sum /= pixels * of_group;
        for (long i = 0; i < pixels * channels; i++) {
            double apart = input[at + i] - sums[i % channels / of_group];
            squares[i % channels / of_group] += apart * apart;
        }
        for (long i = 0; i < pixels * channels; i++) {
            long channel = i % channels, group = channel / of_group;
            double deviation = std::sqrt(squares[group] / (pixels * of_group) + 1e-5);
            result.push_back((input[at + i] - sums[group]) / deviation * weight[channel] + bias[channel]);
        }
    }
    return result;
}
