// Ends a process for lack of memory, or of files or threads if a library has no other way out:
// status 3 with a message, from any thread, and at once.
//
// No thread is waited for and nothing is unwound: threads may wait for the work of this one, and
// destructors may need memory. Files are whole at any time, as for a killed process.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>

#include "common/platform/file_system.h"
#include "common/platform/memory_full.h"
#include "common/process/command_line.h"

namespace hdps {
namespace {

// Set before there are threads, and never freed because threads may outlive global objects.
std::string* program = nullptr;
std::string* log_file = nullptr;
std::string* reserve = nullptr;  // Memory for the last message.
std::terminate_handler usual_end = nullptr;

constexpr char kAfter[] = "; what was saved is whole";

void Write(std::string_view text) {
  // If this fails, there is nobody to tell.
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

[[noreturn]] void EndInFewWords(const char* what, const char* why) {
  for (const char* const text : {program->c_str(), ": error: ", what, why}) Write(text);
  Write(kAfter);
  Write("\n");
  _exit(kExitFailed);
}

[[noreturn]] void EndInWords(const std::string& why) {
  const std::string text = *program + ": error: " + why + kAfter + "\n";
  Write(text);
  if (!log_file->empty()) {
    const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
    const auto log = files->OpenAppend(*log_file);
    if (log.ok()) (void)(*log)->Append(std::as_bytes(std::span<const char>(text))).ok();
  }
  _exit(kExitFailed);
}

// Returns the reason if the uncaught exception means a lack of memory; otherwise nothing.
std::string WhyFull(const std::exception_ptr& thrown) {
  if (thrown == nullptr) return "";
  try {
    std::rethrow_exception(thrown);
  } catch (const MemoryFull& full) {
    return full.what();
  } catch (const std::bad_alloc&) {
    return MemoryFull(uint64_t{0}).what();
  } catch (const std::length_error&) {  // A size beyond what a container can count.
    return MemoryFull(~uint64_t{0}).what();
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again &&
        error.code() != std::errc::not_enough_memory) {
      return "";
    }
    return std::string("out of memory: no thread could be started: ") + error.what() +
           "; raise ulimit -v (each takes its stack, ulimit -s, of it) or ulimit -u";
  } catch (const std::exception& error) {
    const char* const what = WhatIsShort();
    return what == nullptr ? "" : std::string(error.what()) + ": " + what;
  } catch (...) {
    return "";
  }
}

void OnTerminate() {
  static std::atomic<bool> ending = false;
  thread_local bool ends_here = false;
  if (ends_here) EndInFewWords("out of memory: ", "there is none left to say for what");
  while (ending.exchange(true)) ::pause();  // Another thread has begun to end the process.
  ends_here = true;
  delete std::exchange(reserve, nullptr);
  const std::string why = WhyFull(std::current_exception());
  if (!why.empty()) EndInWords(why);
  usual_end();
  std::abort();
}

// Handles abort(), with which libraries stop if they get no memory, file or thread and have no
// other way to report it. Makes no call that takes memory or a lock.
void OnAbort(int /*signal*/) {
  const char* const what = WhatIsShort();
  if (what != nullptr) EndInFewWords("a library has stopped: ", what);
}

}  // namespace

void EndWhereMemoryIsFull(const std::string& name) {
  constexpr size_t kReserveBytes = 64 << 10;
  program = new std::string(name);
  log_file = new std::string();
  reserve = new std::string(kReserveBytes, ' ');
  usual_end = std::set_terminate(OnTerminate);
  std::signal(SIGABRT, OnAbort);
}

void AppendFatalErrorTo(const std::string& file) {
  if (log_file != nullptr) *log_file = file;
}

}  // namespace hdps

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Replaces the operators of the standard library, whose bad_alloc does not say how many bytes were
// asked for. The other forms call these two; sanitizers have operators of their own.
void* operator new(size_t bytes) {
  if (void* const data = std::malloc(std::max<size_t>(bytes, 1))) return data;
  throw hdps::MemoryFull(bytes);
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  const auto unit = static_cast<size_t>(alignment);
  const size_t whole = (std::max<size_t>(bytes, 1) + unit - 1) / unit * unit;
  void* const data = whole < bytes ? nullptr : std::aligned_alloc(unit, whole);
  if (data == nullptr) throw hdps::MemoryFull(bytes);
  return data;
}
#endif
