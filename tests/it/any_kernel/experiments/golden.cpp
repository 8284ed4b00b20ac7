#include "golden.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <stdexcept>
#include <string>
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
    for (volatile int i = 0;;) i = i + 1;
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

// Ends when the other function of the pair runs at the same time.
static std::vector<double> meet(const float *input, const std::string &type, long rows, int columns, int own)
{
    const std::string folder = "FOLDER";
    std::ofstream(folder + "/" + std::to_string(own)).flush();
    while (!std::ifstream(folder + "/" + std::to_string(1 - own))) std::this_thread::yield();
    return softmax(input, type, rows, columns);
}

std::vector<double> one(const float *input, const std::string &type, long rows, int columns)
{
    return meet(input, type, rows, columns, 0);
}

std::vector<double> other(const float *input, const std::string &type, long rows, int columns)
{
    return meet(input, type, rows, columns, 1);
}

// A source may be a program of its own.
int main()
{
    return number({1, 2}) == 2 ? 0 : 1;
}
