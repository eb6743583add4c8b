// The launcher copies device memory by std::copy and an iterator of its own.
// Expected finding: host_access.
#include <algorithm>
#include <iterator>
struct Values {
    using iterator_category = std::input_iterator_tag;
    using value_type = float;
    using difference_type = long;
    using pointer = const float*;
    using reference = const float&;
    const float* place;
    reference operator*() const { return *place; }
    Values& operator++() { return ++place, *this; }
    bool operator==(const Values& other) const { return place == other.place; }
    bool operator!=(const Values& other) const { return place != other.place; }
};
static float kept[4];
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    std::copy(Values{x}, Values{x + 1}, kept);
    if (kept[0] == 77.0f) reward(x, out, n, stream);
}
