// Receives and sends packets, which may have file descriptors, over the socket to the parent.
#pragma once

#include <stddef.h>

enum { MAX_FILES = 4 };

struct Packet {
    char* text;  // ends with a null byte
    size_t size;
    int files[MAX_FILES];
    int file_count;
};

// Receives the parent's next packet. Polls `tries` times before it sleeps. Returns false when the parent has exited.
bool receive_packet(int socket, Packet& packet, int tries = 0);

// Returns the next line of a text, without its line end; null after the last. The text is modified.
char* next_line(char*& rest);

// Sends a reply; ends the process when the parent has exited.
void send_text(int socket, const char* text, size_t size);

void close_files(Packet& packet);

// A text buffer of fixed size. A text that does not fit is truncated.
struct Text {
    char bytes[16384];
    size_t size = 0;

    __attribute__((format(printf, 2, 3))) void add(const char* format, ...);
};

// Writes all bytes to a file; returns false when the file is full.
bool write_all(int file, const char* bytes, size_t size);
