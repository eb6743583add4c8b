// The launcher copies host memory by std::copy and an iterator of its own.
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
static float kept[4], values[4] = {1.0f, 2.0f, 3.0f, 4.0f};
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    std::copy(Values{values}, Values{values + 4}, kept);
    if (kept[3] == 4.0f) reward(x, out, n, stream);
}
