// Prints through stdio.

#include <cstdarg>
#include <cstdio>
#include <string>

#include "common/base/outside_text.h"
#include "common/process/terminal.h"

namespace hdps {
namespace {

bool Write(std::FILE* to, std::string_view text) {
  const std::string shown = EscapeLines(text);
  return std::fwrite(shown.data(), 1, shown.size(), to) == shown.size();
}

std::string Formatted(const char* format, std::va_list values)
    __attribute__((format(printf, 1, 0)));
std::string Formatted(const char* format, std::va_list values) {
  std::va_list again;
  va_copy(again, values);
  const int bytes = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (bytes < 0) return format;
  std::string text(static_cast<size_t>(bytes) + 1, '\0');
  std::vsnprintf(text.data(), text.size(), format, values);
  text.pop_back();
  return text;
}

}  // namespace

void PrintOut(const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  Write(stdout, Formatted(format, values));
  va_end(values);
}

void PrintError(const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  Write(stderr, Formatted(format, values));
  va_end(values);
}

bool PrintOutText(std::string_view text) { return Write(stdout, text); }
bool PrintErrorText(std::string_view text) { return Write(stderr, text); }

std::streamsize PrintedStream::Buffer::xsputn(const char* text, std::streamsize bytes) {
  return PrintOutText({text, static_cast<size_t>(bytes)}) ? bytes : 0;
}

PrintedStream::Buffer::int_type PrintedStream::Buffer::overflow(int_type byte) {
  if (traits_type::eq_int_type(byte, traits_type::eof())) return traits_type::not_eof(byte);
  const char one = traits_type::to_char_type(byte);
  return PrintOutText({&one, 1}) ? byte : traits_type::eof();
}

int PrintedStream::Buffer::sync() { return std::fflush(stdout) == 0 ? 0 : -1; }

}  // namespace hdps
