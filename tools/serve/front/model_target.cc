// Splits a path at its marks.
#include "tools/serve/front/model_target.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace hdps {
namespace {

constexpr size_t kNameBytesMax = 128;
constexpr std::string_view kVersions = "/versions/";

Status NoSuchTarget(const TargetForm& form, std::string_view path) {
  const std::string model = std::string(form.before) + "NAME";
  return Status(Code::kNotFound, "there is no path '" + std::string(path) + "'; write " + model +
                                     " or " + model + std::string(kVersions) +
                                     "STEP, and behind it '" + form.before_verb +
                                     "' and what is asked for");
}

// Returns nothing unless the text is a whole number from 0 on.
std::optional<Clock> ReadStep(std::string_view text) {
  Clock step = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  if (error != std::errc() || end != text.data() + text.size() || step < 0) return std::nullopt;
  return step;
}

}  // namespace

bool IsModelName(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax && std::ranges::all_of(name, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '.';
  });
}

Result<ModelTarget> ReadTarget(const TargetForm& form, std::string_view path) {
  ModelTarget target;
  std::string_view rest = path.substr(form.before.size());
  target.model = rest.substr(0, std::min(rest.find_first_of("/:"), rest.size()));
  if (!IsModelName(target.model)) return NoSuchTarget(form, path);
  rest.remove_prefix(target.model.size());
  if (rest.starts_with(kVersions)) {
    rest.remove_prefix(kVersions.size());
    const std::string_view text =
        rest.substr(0, std::min(rest.find(form.before_verb), rest.size()));
    const std::optional<Clock> step = ReadStep(text);
    if (!step) return NoSuchTarget(form, path);
    target.step = *step;
    rest.remove_prefix(text.size());
  }
  if (rest.empty()) return target;
  if (rest.front() != form.before_verb) return NoSuchTarget(form, path);
  target.verb = rest.substr(1);
  if (target.verb.empty()) return NoSuchTarget(form, path);
  return target;
}

}  // namespace hdps
