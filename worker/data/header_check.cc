// Names of the job against the cells of a file's first line.
#include "worker/data/header_check.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace hdps {
namespace {

constexpr size_t kNamesShownMax = 3;

std::string Quoted(const std::string& text) { return "'" + Printable(text) + "'"; }

bool SameName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

// "pixel" of "pixel12"; the whole name where it does not end with a number.
std::string_view WithoutNumber(std::string_view name) {
  const size_t last = name.find_last_not_of("0123456789");
  return last == name.npos ? name : name.substr(0, last + 1);
}

}  // namespace

bool NamesItsColumns(const std::vector<NamedText>& first_line) {
  size_t equal = 0;
  for (const NamedText& cell : first_line) {
    equal += !cell.name.empty() && SameName(cell.name, cell.text) ? 1 : 0;
  }
  return 2 * equal > first_line.size() && equal >= std::min<size_t>(2, first_line.size());
}

Status CompareHeader(const std::string& place, const std::vector<NamedText>& header,
                     std::vector<std::string>* warnings) {
  std::string differing;
  size_t num_differing = 0;
  for (size_t i = 0; i < header.size(); ++i) {
    const NamedText& cell = header[i];
    if (cell.name.empty() || SameName(cell.name, cell.text)) continue;
    const auto elsewhere = std::find_if(header.begin(), header.end(), [&](const NamedText& other) {
      return SameName(other.text, cell.name);
    });
    const bool numbered = WithoutNumber(cell.name) != cell.name &&
                          SameName(WithoutNumber(cell.name), WithoutNumber(cell.text));
    if (elsewhere != header.end() && !numbered) {
      return {Code::kInvalidArgument,
              place + ": column " + std::to_string(i + 1) + " of the header is " +
                  Quoted(cell.text) + ", but the job has " + Quoted(cell.name) +
                  " there, which is " + "column " + std::to_string(elsewhere - header.begin() + 1) +
                  " of the header: expected data.columns in the order of the file"};
    }
    if (++num_differing > kNamesShownMax) continue;
    differing += (num_differing == 1 ? "" : ", ") + Quoted(cell.text) + " for " + Quoted(cell.name);
  }
  if (num_differing == 0) return {};
  if (num_differing > kNamesShownMax) {
    differing += " and " + std::to_string(num_differing - kNamesShownMax) + " more";
  }
  warnings->push_back(place + ": the header has other names than the job: " + differing);
  return {};
}

}  // namespace hdps
