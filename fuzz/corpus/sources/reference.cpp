#include <vector>
#if __has_include("k.cu")
#  include_next <k.cu>
#endif
namespace other { inline std::vector<double> f(int a); }
/// The result.
std::vector<double> f(const std::vector<double> &a, double scale = 2.0) {
    return {a.begin(), a.end()};
}
