// What a fuzz target is: a name, what it does with bytes from outside, and inputs to begin with.
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

// Whether the bytes were taken for what they say they are. Either is right; what else comes of an
// input ends the process, and that is the failure: a CHECK, a sanitizer, a limit.
enum class Verdict : uint8_t { kRefused, kAccepted };

struct Target {
  std::string name;
  Verdict (*run)(std::string_view input);
  // Sound inputs, made by the program's own writers, so that they follow its formats.
  std::vector<std::string> (*seeds)();
};

// By name; those of this program alone.
const std::vector<Target>& Targets();
// A target of its own at the beginning of the program.
struct AddTarget {
  explicit AddTarget(Target target);
};

// Refused as bytes from outside are: with a code that says so, and with words.
Verdict Refused(const Status& status, Code expected);

// Makes the file, and its folder.
void PutFile(FileSystem& files, const std::string& path, std::string_view bytes);

// Numbers and bytes out of an input, one behind the other. Behind its end all numbers are 0.
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
  // At most so many.
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

// Whether the checksums of an input are to be made to fit, so that what lies behind them is met:
// its first byte says so, of every second one.
bool TakeSealed(Input& input);
// From now on of none: how far does one come without?
void LeaveUnsealed();

// The bytes of a number, or of a struct without padding, as Input takes them.
template <typename Value>
std::string BytesOf(const Value& value) {
  static_assert(std::has_unique_object_representations_v<Value>);
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace hdps::fuzz
