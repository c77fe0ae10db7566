// The only way to write to stdout and stderr. Text from any source is printed so that it cannot
// control a terminal.
#pragma once

#include <ostream>
#include <streambuf>
#include <string_view>

#include "common/base/outside_text.h"

namespace hdps {

// Format like printf and print to stdout and stderr, after EscapeLines(). Pass names from outside
// through EscapeUntrusted() first, so that they cannot begin a line either.
void PrintOut(const char* format, ...) __attribute__((format(printf, 1, 2)));
void PrintError(const char* format, ...) __attribute__((format(printf, 1, 2)));
// Print a text as it is, after EscapeLines(). Return false if it could not be written.
bool PrintOutText(std::string_view text);
bool PrintErrorText(std::string_view text);

// Stdout as a stream that writes through PrintOutText().
class PrintedStream : public std::ostream {
 public:
  PrintedStream() : std::ostream(&buffer_) {}

 private:
  class Buffer : public std::streambuf {
   protected:
    std::streamsize xsputn(const char* text, std::streamsize bytes) override;
    int_type overflow(int_type byte) override;
    int sync() override;
  };
  Buffer buffer_;
};

}  // namespace hdps
