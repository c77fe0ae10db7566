// Tells an operator once that a file cannot be written.
#pragma once

#include <optional>
#include <string>

#include "common/base/status.h"

namespace hdps {

// Invariant: an error is told once, and again only if writing succeeded in between.
class WriteTrouble {
 public:
  // Takes the result of a write.
  void Note(const Status& status) {
    if (!status.ok()) {
      trouble_ = status.message();
    } else if (told_) {
      trouble_.reset();
      told_ = false;
    }
  }
  // Returns the error that has not been told yet.
  std::optional<std::string> Take() {
    if (told_ || !trouble_) return std::nullopt;
    told_ = true;
    return trouble_;
  }

 private:
  std::optional<std::string> trouble_;
  bool told_ = false;
};

}  // namespace hdps
