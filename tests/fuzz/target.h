// Defines a fuzz target: a name, a function of untrusted bytes, and seed inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps::fuzz {

// Whether the input was accepted as valid. Both are right; a failure is anything that ends the
// process: a CHECK, a sanitizer, a limit.
enum class Verdict : uint8_t { kRefused, kAccepted };

struct Target {
  std::string name;
  Verdict (*run)(std::string_view input);
  // Makes valid inputs with the program's own writers, so that they follow its formats.
  std::vector<std::string> (*seeds)();
};

// Returns the targets of this program by name.
const std::vector<Target>& Targets();
// Registers a target when the program starts.
struct AddTarget {
  explicit AddTarget(Target target);
};

// Returns kRefused. Requires: the status has the expected code and a message.
Verdict Refused(const Status& status, Code expected);

// Writes the file and creates its folder.
void PutFile(FileSystem& files, const std::string& path, std::string_view bytes);

// Reads numbers and bytes from an input in sequence. Numbers behind its end are 0.
class Input {
 public:
  explicit Input(std::string_view bytes) : bytes_(bytes) {}
  template <typename Number = uint8_t>
  Number Take() {
    static_assert(std::is_integral_v<Number>);
    Number number = 0;
    const std::string_view taken = TakeBytes(sizeof(number));
    std::memcpy(&number, taken.data(), taken.size());
    return number;
  }
  // Returns at most `count` bytes.
  std::string_view TakeBytes(size_t count) {
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view TakeRest() { return TakeBytes(bytes_.size()); }
  bool empty() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

// Reads from the input's first byte whether its checksums should be made valid, so that the code
// behind the check is reached; every second value says yes.
bool TakeChecksumRepair(Input& input);
// Leaves all checksums as they are from now on, to measure how far inputs get without it.
void LeaveChecksums();

// Returns the bytes of a number, or of a struct without padding, as Input reads them.
template <typename Value>
std::string BytesOf(const Value& value) {
  static_assert(std::has_unique_object_representations_v<Value>);
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace hdps::fuzz
