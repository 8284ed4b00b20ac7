#include "golden.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <vector>

std::vector<double> softmax(const float *input, const std::string &type, long rows, int columns, double scale = 1)
{
    if (type != "f32") throw std::invalid_argument("the type is " + type);
    std::vector<double> result;
    for (long row = 0; row < rows; row++) {
        const float *x = input + row * columns;
        double sum = 0;
        for (int i = 0; i < columns; i++) sum += std::exp(SCALE * scale * x[i]);
        for (int i = 0; i < columns; i++) result.push_back(std::exp(SCALE * scale * x[i]) / sum);
    }
    return result;
}

std::vector<float> wrong(std::vector<float> input)
{
    for (float &x : input) x *= 0.5f;
    return input;
}

std::vector<int> integers(const std::vector<float> &input)
{
    return std::vector<int>(input.size(), 1);
}

double number(const std::vector<float> &input)
{
    return *std::max_element(input.begin(), input.end());
}

double endless()
{
    std::this_thread::sleep_for(std::chrono::minutes(10));
    return 0;
}

double failing(long rows)
{
    throw std::runtime_error("no softmax of " + std::to_string(rows) + " rows");
}

double crashing()
{
    volatile int *nowhere = nullptr;
    return *nowhere;
}

// Signals in its writable folder that it is running, and returns when the test allows it.
static std::vector<double> meet(const float *input, const std::string &type, long rows, int columns, const char *own)
{
    std::ofstream(std::string(std::getenv("TMPDIR")) + "/" + own).flush();
    struct stat met;
    while (stat("FOLDER/met", &met) != 0) std::this_thread::yield();
    return softmax(input, type, rows, columns);
}

#include <cstdio>

/// Asks for more memory than any host has, and touches none of it.
std::vector<double> greedy(const float *input, const std::string &type, long rows, int columns)
{
    std::vector<char *> kept;
    for (int i = 0; i < 8192; i++) kept.push_back(new char[1 << 30]);
    return softmax(input, type, rows, columns);
}

/// Writes more to standard error than the runner keeps.
std::vector<double> talkative(const float *input, const std::string &type, long rows, int columns)
{
    for (int i = 0; i < 1 << 16; i++) std::fprintf(stderr, "%0512d\n", i);
    return softmax(input, type, rows, columns);
}

/// Reads a file of the project that is not hashed, and returns the right result.
std::vector<double> informed(const float *input, const std::string &type, long rows, int columns)
{
    if (!std::ifstream("FOLDER/kernels/softmax.cu")) throw std::runtime_error("not readable");
    return softmax(input, type, rows, columns);
}

double reading()
{
    std::ifstream file("FOLDER/kernels/softmax.cu");
    if (!file) throw std::runtime_error("not readable");
    return 0;
}

std::vector<double> one(const float *input, const std::string &type, long rows, int columns)
{
    return meet(input, type, rows, columns, "one");
}

std::vector<double> other(const float *input, const std::string &type, long rows, int columns)
{
    return meet(input, type, rows, columns, "other");
}

// A source may also be a complete program.
int main()
{
    return number({1, 2}) == 2 ? 0 : 1;
}

// Samples the image where `turn` of textures.cu does, in double precision. All fractions fit the 8 bits of a texture unit.
std::vector<double> turned(const std::vector<unsigned char> &image, int width, int height)
{
    std::vector<double> result;
    auto texel = [&](int x, int y) { return image[(y + height) % height * width + (x + width) % width] / 255.0; };
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            double u = (x + 0.5) / width - 0.5, v = (y + 0.5) / height - 0.5;
            double s = (0.75 * u - 0.5 * v + 0.5) * width - 0.5, t = (0.75 * v + 0.5 * u + 0.5) * height - 0.5;
            int i = (int)std::floor(s), j = (int)std::floor(t);
            double a = s - i, b = t - j;
            double upper = (1 - a) * texel(i, j) + a * texel(i + 1, j);
            result.push_back((1 - b) * upper + b * ((1 - a) * texel(i, j + 1) + a * texel(i + 1, j + 1)));
        }
    return result;
}

std::vector<double> blurred(const std::vector<float> &image, int width, int height)
{
    std::vector<double> result;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            double sum = 0;
            for (int j = y - 1; j <= y + 1; j++)
                for (int i = x - 1; i <= x + 1; i++)
                    sum += image[std::clamp(j, 0, height - 1) * width + std::clamp(i, 0, width - 1)];
            result.push_back(sum / 9);
        }
    return result;
}
