// Packets with file descriptors over the socket to the parent.
#pragma once

#include <stddef.h>

enum { MAX_FILES = 4 };

struct Packet {
    char* text;  // ends with a null byte
    size_t size;
    int files[MAX_FILES];
    int file_count;
};

// Waits for the parent's next packet and polls `tries` times before it sleeps; returns false when the parent has
// exited.
bool receive_packet(int socket, Packet& packet, int tries = 0);

// Sends a reply; ends the process when the parent has exited.
void send_text(int socket, const char* text, size_t size);

void close_files(Packet& packet);

// A text that is built piece by piece and truncated when it is full.
struct Text {
    char bytes[16384];
    size_t size = 0;

    __attribute__((format(printf, 2, 3))) void add(const char* format, ...);
};

// Writes all bytes to a file; returns false when the file is full.
bool write_all(int file, const char* bytes, size_t size);
