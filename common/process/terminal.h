// The one door to stdout and stderr: whoever has written a text that is printed, it steers no
// terminal.
#pragma once

#include <ostream>
#include <streambuf>
#include <string_view>

#include "common/base/outside_text.h"

namespace hdps {

// As printf has it, to stdout and to stderr; what comes of it is shown as by ShowLines(). Names
// that others have given go through ShowOutside() before, so that they begin no line either.
void PrintOut(const char* format, ...) __attribute__((format(printf, 1, 2)));
void PrintError(const char* format, ...) __attribute__((format(printf, 1, 2)));
// The same of a text as it is. False when it could not be written.
bool PrintOutText(std::string_view text);
bool PrintErrorText(std::string_view text);

// Stdout as a stream, by PrintOutText().
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
