// Tests of containers: growth, collisions, and contents after their memory has moved.
#include "checks/core/containers.h"

#include <sys/wait.h>
#include <unistd.h>

#include "checks/counting/request.h"
#include "seed.h"
#include "unit.h"

using namespace sim::checks;

CASE(growable_keeps_elements_when_it_grows) {
    Growable<unsigned> array;
    CHECK(array.empty());
    for (unsigned i = 0; i < 1000; ++i) array.push(i * i);
    CHECK_EQUAL(array.size(), 1000);
    for (unsigned i = 0; i < 1000; ++i) CHECK_EQUAL(array[i], i * i);
    CHECK_EQUAL(array.back(), 999 * 999);
}

CASE(growable_without_memory_ends_the_process_with_a_message) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        volatile size_t too_many = size_t(1) << 60;
        Growable<char> array;
        array.reserve(too_many);
        _exit(0);
    }
    close(ends[1]);
    char text[200] = {};
    CHECK(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(strstr(text, "the simulator is out of memory"));
}

CASE(growable_can_push_its_own_element) {
    Growable<uint64_t> array;
    array.push(42);
    // The argument of push is an element of the array itself, which moves when the array grows.
    for (unsigned i = 0; i < 100; ++i) array.push(array[0]);
    for (uint64_t element : array) CHECK_EQUAL(element, 42);
}

CASE(growable_keeps_the_elements_that_a_function_accepts) {
    Growable<int> array;
    for (int i = 0; i < 10; ++i) array.push(i);
    array.keep([](int i) { return i % 3 == 0; });
    CHECK_EQUAL(array.size(), 4);
    for (int i = 0; i < 4; ++i) CHECK_EQUAL(array[static_cast<size_t>(i)], 3 * i);
}

CASE(partition_point_is_the_first_index_that_does_not_come_before) {
    for (size_t count = 0; count < 6; ++count)
        for (size_t point = 0; point <= count; ++point)
            CHECK_EQUAL(sim::partition_point(count, [=](size_t i) { return i < point; }), point);
}

CASE(growable_can_change_elements_in_its_middle) {
    Growable<int> array;
    const int values[] = {1, 2, 4, 5};
    array.append(values, 4);
    array.insert(2, 3);
    array.insert(0, 0);
    array.insert(6, 6);
    for (int i = 0; i < 7; ++i) CHECK_EQUAL(array[static_cast<size_t>(i)], i);
    array.remove(0);
    array.remove(5);
    CHECK_EQUAL(array.size(), 5);
    for (int i = 0; i < 5; ++i) CHECK_EQUAL(array[static_cast<size_t>(i)], i + 1);
    array.remove_unordered(1);
    CHECK(array.size() == 4 && array[0] == 1 && array[1] == 5 && array[3] == 4);
    array.truncate(1);
    CHECK(array.size() == 1 && array[0] == 1);
    CHECK_ABORTS(array.remove(1));
    CHECK_ABORTS(array.truncate(2));
    CHECK_ABORTS(array.insert(3, 0));
}

CASE(map_finds_only_inserted_keys) {
    HashMap<uint32_t> map;
    CHECK(!map.find(1));
    unit::Random random;
    for (unsigned i = 1; i <= 5000; ++i) map.at(uint64_t(i) << 12) = i;  // keys like the addresses of memory pages
    CHECK_EQUAL(map.size(), 5000);
    for (unsigned i = 1; i <= 5000; ++i) CHECK_EQUAL(*map.find(uint64_t(i) << 12), i);
    for (unsigned i = 1; i <= 5000; ++i) CHECK(!map.find((uint64_t(i) << 12) + 1 + random.below(4000)));
    uint64_t sum = 0;
    map.each([&sum](uint64_t key, uint32_t value) { sum += value, CHECK_EQUAL(key >> 12, value); });
    CHECK_EQUAL(sum, 5000 * 5001 / 2);
}

CASE(map_keeps_colliding_keys_apart) {
    HashMap<uint64_t> map;
    Growable<uint64_t> keys;  // these keys collide while the map has at most 1024 slots
    for (uint64_t key = 1; keys.size() < 300; ++key)
        if ((mix(key) & 1023) == 1023) keys.push(key);
    for (uint64_t key : keys) map.at(key) = ~key;
    for (uint64_t key : keys) CHECK(*map.find(key) == ~key);
    for (uint64_t key : keys) CHECK(map.at(key) == ~key);
    CHECK_EQUAL(map.size(), 300);
}

CASE(map_value_of_a_new_key_is_zero_also_after_clear) {
    HashMap<uint64_t> map;
    CHECK_EQUAL(map.at(5), 0);
    map.at(5) = 1;
    map.clear();
    CHECK(map.size() == 0 && !map.find(5));
    CHECK_EQUAL(map.at(5), 0);
    CHECK_ABORTS(map.at(0));
}

CASE(mix_keeps_keys_distinct) {
    HashMap<uint32_t> seen;
    for (uint64_t i = 1; i < 20000; ++i) CHECK_EQUAL(seen.at(mix(i * 16) | 1)++, 0);
}

CASE(pool_returns_distinct_aligned_memory) {
    Pool pool;
    unsigned char* taken[200];
    for (unsigned i = 0; i < 200; ++i) {
        size_t bytes = 1 + i * i * 7;  // sizes up to several chunks of the pool
        taken[i] = pool.take<unsigned char>(bytes);
        CHECK_EQUAL(reinterpret_cast<uintptr_t>(taken[i]) % 16, 0);
        memset(taken[i], static_cast<int>(i), bytes);
    }
    for (unsigned i = 0; i < 200; ++i) CHECK(taken[i][0] == i && taken[i][i * i * 7] == i);
    pool.clear();
    CHECK(pool.take<uint64_t>() != nullptr);
}

CASE(number_set_reports_new_numbers) {
    static NumberSet set;  // static, because a set must begin with zero bytes
    unit::Random random(2);
    for (unsigned round = 0; round < 200; ++round) {
        set.clear();
        uint32_t added[64];
        unsigned count = 0;
        for (unsigned i = 0; i < 64; ++i) {
            uint32_t number = random.below(round % 2 ? 90 : ~0u);
            bool known = false;
            for (unsigned j = 0; j < count; ++j) known = known || added[j] == number;
            CHECK_EQUAL(set.add(number), !known);
            if (!known) added[count++] = number;
        }
    }
}
