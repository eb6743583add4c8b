// Receives and sends packets, which may have file descriptors, over the socket to the parent.
#include "wire.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../jail/source/confine.h"
#include "protocol.h"

bool receive_packet(int socket, Packet& packet, int tries) {
    static char buffer[MAX_PACKET + 1];
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * MAX_FILES)];
    iovec bytes{buffer, MAX_PACKET};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;

    ssize_t size = -1;
    while (size < 0 && tries-- > 0) size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    while (size < 0) {
        size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
        if (size < 0 && errno != EINTR) return false;
    }
    if (size == 0) return false;

    buffer[size] = 0;
    packet.text = buffer;
    packet.size = static_cast<size_t>(size);
    packet.file_count = 0;
    for (cmsghdr* item = CMSG_FIRSTHDR(&message); item != nullptr; item = CMSG_NXTHDR(&message, item)) {
        if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
        packet.file_count = static_cast<int>((item->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        if (packet.file_count > MAX_FILES) packet.file_count = MAX_FILES;
        memcpy(packet.files, CMSG_DATA(item), sizeof(int) * static_cast<size_t>(packet.file_count));
        for (int i = 0; i < packet.file_count; ++i)
            // A received file got the number of stdin, stdout or stderr, which a kernel has closed. Reject the
            // packet, because the kernel would print into the file.
            if (packet.files[i] <= STDERR_FILENO) return false;
    }
    return true;
}

char* next_line(char*& rest) {
    if (rest == nullptr || *rest == 0) return nullptr;
    char* line = rest;
    char* end = strchr(rest, '\n');
    if (end != nullptr) *end = 0;
    rest = end != nullptr ? end + 1 : nullptr;
    return line;
}

void send_text(int socket, const char* text, size_t size) {
    long sent;
    do
        sent =
            confine_call(SYS_sendto, socket, reinterpret_cast<long>(text), static_cast<long>(size), MSG_NOSIGNAL, 0, 0);
    while (sent == -EINTR);
    if (sent < 0) _exit(0);
}

void close_files(Packet& packet) {
    for (int i = 0; i < packet.file_count; ++i) close(packet.files[i]);
    packet.file_count = 0;
}

void Text::add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(bytes + size, sizeof bytes - size, format, arguments);
    va_end(arguments);
    if (length < 0) return;
    size += static_cast<size_t>(length);
    if (size >= sizeof bytes) size = sizeof bytes - 1;
}

bool write_all(int file, const char* bytes, size_t size) {
    while (size > 0) {
        long written = confine_call(SYS_write, file, reinterpret_cast<long>(bytes), static_cast<long>(size), 0, 0, 0);
        if (written == -EINTR) continue;
        if (written <= 0) return false;
        bytes += written;
        size -= static_cast<size_t>(written);
    }
    return true;
}
