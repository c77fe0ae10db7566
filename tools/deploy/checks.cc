// Follows the grammars of Kubernetes' and of the registries' names.
#include "tools/deploy/checks.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

namespace hdps {
namespace {

constexpr size_t kLabelMax = 63, kSubdomainMax = 253, kRepositoryMax = 255, kTagMax = 128;

bool IsSmall(char c) { return (c >= 'a' && c <= 'z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

Status Wrong(const std::string& flag, const std::string& value, const std::string& what) {
  return Status(Code::kInvalidArgument, flag + "=" + value + ": " + what);
}

// Is true for small letters, digits and dashes, of which no dash is first or last.
bool IsLabel(std::string_view text) {
  if (text.empty() || text.size() > kLabelMax || text.front() == '-' || text.back() == '-') {
    return false;
  }
  return std::ranges::all_of(text, [](char c) { return IsSmall(c) || IsDigit(c) || c == '-'; });
}

// Cuts the text before `mark` off `*rest`, or all of it.
std::string_view CutUntil(std::string_view* rest, char mark) {
  const size_t end = std::min(rest->find(mark), rest->size());
  const std::string_view head = rest->substr(0, end);
  rest->remove_prefix(std::min(end + 1, rest->size()));
  return head;
}

// One component of an image's path: small letters and digits, with '.', '_', "__" or dashes
// between them.
bool IsPathComponent(std::string_view text) {
  if (text.empty()) return false;
  const auto inner = [](char c) { return IsSmall(c) || IsDigit(c); };
  if (!inner(text.front()) || !inner(text.back())) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (inner(text[i])) continue;
    const bool again = !inner(text[i - 1]);
    if (text[i] == '-' && (!again || text[i - 1] == '-')) continue;
    if (text[i] != '.' && text[i] != '_') return false;
    if (again && !(text[i] == '_' && text[i - 1] == '_' && inner(text[i - 2]))) return false;
  }
  return true;
}

bool IsHost(std::string_view text) {
  std::string_view rest = text;
  const std::string_view name = CutUntil(&rest, ':');
  if (name.size() + 1 < text.size()) {
    if (rest.size() > 5 || !std::ranges::all_of(rest, IsDigit)) return false;
  } else if (name.size() != text.size()) {
    return false;  // A colon without a port.
  }
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-';
  });
}

constexpr const char* kImageIs =
    "expected [HOST[:PORT]/]NAME[:TAG][@sha256:DIGEST] in small "
    "letters, as registry.example/hdps:1.0";

}  // namespace

Status CheckObjectName(const std::string& flag, const std::string& name) {
  if (IsLabel(name) && IsSmall(name.front())) return {};
  const std::string nearest = ObjectNameOf(name);
  return Wrong(flag, name,
               "Kubernetes takes names of 1 to 63 small letters, digits and dashes that begin with "
               "a letter and end with a letter or digit" +
                   (nearest.empty() ? "" : "; give " + flag + "=" + nearest));
}

Status CheckSubdomainName(const std::string& flag, const std::string& name) {
  std::string_view rest = name;
  bool good = !name.empty() && name.size() <= kSubdomainMax && name.back() != '.';
  while (good && !rest.empty()) good = IsLabel(CutUntil(&rest, '.'));
  if (good) return {};
  return Wrong(flag, name,
               "Kubernetes takes names of up to 253 small letters, digits, dashes and dots that "
               "begin and end with a letter or digit");
}

Status CheckImage(const std::string& flag, const std::string& image) {
  if (image.empty()) {
    return Wrong(flag, image, "the image has no name; " + std::string(kImageIs));
  }
  std::string_view rest = image;
  std::string_view name = CutUntil(&rest, '@');
  if (name.size() < image.size()) {
    constexpr std::string_view kAlgorithm = "sha256:";
    constexpr size_t kDigits = 64;
    const bool good = rest.starts_with(kAlgorithm) && rest.size() == kAlgorithm.size() + kDigits &&
                      std::ranges::all_of(rest.substr(kAlgorithm.size()), [](char c) {
                        return IsDigit(c) || (c >= 'a' && c <= 'f');
                      });
    if (!good) return Wrong(flag, image, "its digest is not sha256: and 64 hexadecimal digits");
  }
  const size_t colon = name.rfind(':');
  if (colon != std::string_view::npos && name.find('/', colon) == std::string_view::npos) {
    const std::string_view tag = name.substr(colon + 1);
    const auto in_tag = [](char c) { return IsWord(c) || c == '.' || c == '-'; };
    if (tag.empty() || tag.size() > kTagMax || !IsWord(tag.front()) ||
        !std::ranges::all_of(tag, in_tag)) {
      return Wrong(flag, image, "its tag \"" + std::string(tag) + "\" is none; " + kImageIs);
    }
    name = name.substr(0, colon);
  }
  if (name.empty()) return Wrong(flag, image, "the image has no name; " + std::string(kImageIs));
  bool good = name.size() <= kRepositoryMax && name.back() != '/';
  std::string_view components = name;
  if (const size_t slash = name.find('/'); slash != std::string_view::npos) {
    const std::string_view first = name.substr(0, slash);
    if (first.find_first_of(".:") != std::string_view::npos || first == "localhost") {
      good = good && IsHost(first);
      components.remove_prefix(slash + 1);
    }
  }
  while (good && !components.empty()) good = IsPathComponent(CutUntil(&components, '/'));
  return good ? Status() : Wrong(flag, image, kImageIs);
}

Status CheckVolumePath(const std::string& flag, const std::string& path) {
  std::string_view rest = path;
  bool good = path.empty() || path.front() != '/';
  while (good && !rest.empty()) {
    const std::string_view part = CutUntil(&rest, '/');
    good = !part.empty() && part != "." && part != ".." &&
           std::ranges::all_of(part, [](char c) { return IsWord(c) || c == '.' || c == '-'; });
  }
  if (good) return {};
  return Wrong(flag, path,
               "expected a folder of the volume, as out/census: letters, digits, '.', '-', '_' and "
               "'/', without a leading '/' and without ..");
}

Result<uint64_t> ReadQuantity(const std::string& flag, const std::string& text) {
  constexpr std::array<std::pair<std::string_view, double>, 7> kUnits = {{{"", 1},
                                                                          {"Mi", 0x1p20},
                                                                          {"Gi", 0x1p30},
                                                                          {"Ti", 0x1p40},
                                                                          {"M", 1e6},
                                                                          {"G", 1e9},
                                                                          {"T", 1e12}}};
  constexpr double kLeast = 0x1p26, kMost = 0x1p53;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, text.data() + text.size() - end);
  for (const auto& [name, factor] : kUnits) {
    if (error != std::errc() || unit != name || !std::isfinite(value)) continue;
    const double bytes = value * factor;
    if (bytes >= kLeast && bytes <= kMost) return static_cast<uint64_t>(bytes);
    return Wrong(flag, text, "a member needs at least 64Mi, and no machine has more than 8192Ti");
  }
  return Wrong(flag, text, "expected bytes as Kubernetes writes them: 512Mi, 8Gi or 2G");
}

std::string ObjectNameOf(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const char small = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const bool kept = IsSmall(small) || (IsDigit(small) && !name.empty());
    if (kept) {
      name += small;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  if (name.size() > kLabelMax) name.resize(kLabelMax);
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name;
}

}  // namespace hdps
