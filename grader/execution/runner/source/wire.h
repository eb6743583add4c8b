// Packets with files over the socket to the parent.
#pragma once

#include <stddef.h>

enum { MAX_FILES = 4 };

struct Packet {
    char* text;  // ends with a null byte
    size_t size;
    int files[MAX_FILES];
    int file_count;
};

// Waits for the parent's next packet, looking `tries` times before it sleeps; false when the parent is gone.
bool receive_packet(int socket, Packet& packet, int tries = 0);

// Sends a reply; the process ends when the parent is gone.
void send_text(int socket, const char* text, size_t size);

void close_files(Packet& packet);

// A text that is put together piece by piece, cut when it is full.
struct Text {
    char bytes[16384];
    size_t size = 0;

    __attribute__((format(printf, 2, 3))) void add(const char* format, ...);
};

// Writes all of it to a file; false when the file is full.
bool write_all(int file, const char* bytes, size_t size);
