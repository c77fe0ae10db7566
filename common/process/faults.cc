// Parses the rules of --faults, and wraps transports and file systems with the faults.
#include "common/process/faults.h"

#include <charconv>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "common/base/byte_count.h"
#include "common/base/nearest_name.h"

namespace hdps {

const char kFaultsHelp[] =
    "Faults on purpose, for tests only: rules with commas between them. drop=5%, repeat=5%, "
    "reorder=10%, late=0..200ms or late=10%:0..200ms of the frames that leave this process; "
    "cut=all|scheduler|members[:in|:out][@10s+30s], from 10 s on for 30 s, or @while=PATH, as long "
    "as there is a file PATH; seed=1; "
    "full=GLOB[:BYTES], failing=GLOB[:N] (every N-th call), slow=GLOB:50ms, each with @ too, and "
    "torn=GLOB[:N] (the N-th write) of files whose path ends like GLOB; "
    "point=NAME:crash|exit|error|sleep=50ms[@N|@N..M|@N..] at its N-th hit; \"count\" only logs "
    "the failpoints that are reached, \"list\" prints all of them and ends";

namespace {

// Splits at the mark: "a:b" -> {"a", "b"}. Without the mark there is no second part.
std::pair<std::string, std::optional<std::string>> SplitAt(const std::string& text,
                                                           std::string_view mark) {
  const size_t at = text.find(mark);
  if (at == std::string::npos) return {text, std::nullopt};
  return {text.substr(0, at), text.substr(at + mark.size())};
}

template <typename Number>
std::optional<Number> NumberOf(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Parses "5%" as 0.05.
std::optional<double> PartOf(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  const auto percent = NumberOf<double>(text.substr(0, text.size() - 1));
  if (!percent || !(*percent >= 0 && *percent <= 100)) return std::nullopt;
  return *percent / 100;
}

// Parses "200ms" and "30s" to milliseconds.
std::optional<int64_t> MsOf(std::string_view text) {
  constexpr uint32_t kMsMax = 1'000'000'000;
  const bool in_ms = text.ends_with("ms");
  if (!in_ms && !text.ends_with('s')) return std::nullopt;
  const auto number = NumberOf<uint32_t>(text.substr(0, text.size() - (in_ms ? 2 : 1)));
  if (!number || *number > kMsMax) return std::nullopt;
  return int64_t{*number} * (in_ms ? 1 : 1000);
}

// Parses "10s+30s", "10s", "while=PATH" or nothing.
bool ReadWindow(const std::optional<std::string>& text, FaultWindow* window) {
  if (!text) return true;
  constexpr std::string_view kWhile = "while=";
  if (text->starts_with(kWhile)) {
    window->while_file = text->substr(kWhile.size());
    return !window->while_file.empty();
  }
  const auto [from, length] = SplitAt(*text, "+");
  const std::optional<int64_t> begin = MsOf(from);
  if (!begin) return false;
  window->from_ms = *begin;
  if (!length) return true;
  const std::optional<int64_t> ms = MsOf(*length);
  if (!ms) return false;
  window->for_ms = *ms;
  return true;
}

constexpr char kWindowForm[] =
    "; behind it may stand @10s+30s, from 10 s on for 30 s, or @while=PATH";

// The error of a rule's value, with what would be right; empty if nothing is wrong.
using Mistake = std::string;

Mistake ReadPart(const std::string& value, double* part) {
  const std::optional<double> read = PartOf(value);
  if (!read) return "expected a part of the frames, 0% to 100%, such as 5%";
  *part = *read;
  return "";
}

Mistake ReadLate(const std::string& value, FrameFaults* frames) {
  const Mistake mistake = "expected 0..200ms, or 10%:0..200ms for a part of the frames";
  const auto [first, second] = SplitAt(value, ":");
  const std::optional<double> part = second ? PartOf(first) : 1.0;
  const auto [low, high] = SplitAt(second.value_or(first), "..");
  const auto min = NumberOf<uint32_t>(low);
  const int64_t max = high ? MsOf(*high).value_or(-1) : -1;
  if (!part || !min || max < int64_t{*min}) return mistake;
  frames->late = *part;
  frames->late_ms_min = *min;
  frames->late_ms_max = max;
  return "";
}

Mistake ReadCut(const std::string& value, FrameFaults* frames) {
  const auto [link, window] = SplitAt(value, "@");
  const auto [whom, way] = SplitAt(link, ":");
  FrameFaults::Cut cut;
  const std::map<std::string, FrameFaults::Whom> words = {
      {"all", FrameFaults::Whom::kAll},
      {"scheduler", FrameFaults::Whom::kScheduler},
      {"members", FrameFaults::Whom::kMembers}};
  const auto word = words.find(whom);
  const bool fits = !way || *way == "in" || *way == "out";
  if (word == words.end() || !fits || !ReadWindow(window, &cut.window)) {
    return std::string("expected all, scheduler or members, with :in or :out for one way only") +
           kWindowForm;
  }
  cut.whom = word->second;
  cut.in = !way || *way == "in";
  cut.out = !way || *way == "out";
  frames->cuts.push_back(cut);
  return "";
}

Mistake ReadFile(FileFault::Kind kind, const std::string& value, std::vector<FileFault>* files) {
  const auto [what, window] = SplitAt(value, "@");
  const auto [glob, amount] = SplitAt(what, ":");
  FileFault fault;
  fault.kind = kind;
  fault.glob = glob;
  std::string expected;
  int64_t number = -1;  // Not a valid number.
  if (kind == FileFault::Kind::kFull) {
    const std::optional<uint64_t> bytes = ParseByteCount(amount.value_or("0"));
    if (bytes && *bytes <= INT64_MAX) number = static_cast<int64_t>(*bytes);
    expected = "expected GLOB or GLOB:BYTES, such as checkpoint/*:1MiB";
  } else if (kind == FileFault::Kind::kSlow) {
    number = MsOf(amount.value_or("")).value_or(-1);
    expected = "expected GLOB:MS, such as checkpoint/*:50ms";
  } else {
    number = NumberOf<uint32_t>(amount.value_or("1")).value_or(0);
    if (number == 0) number = -1;
    expected = "expected GLOB or GLOB:N, N being at least 1";
  }
  if (glob.empty() || number < 0 || !ReadWindow(window, &fault.window)) {
    return expected + kWindowForm;
  }
  fault.amount = static_cast<uint64_t>(number);
  files->push_back(fault);
  return "";
}

// Parses "3", "3..", "3..5" or nothing, which means the first hit.
bool ReadHits(const std::optional<std::string>& text, PlannedFailure* failure) {
  if (!text) return true;
  const auto [first, last] = SplitAt(*text, "..");
  const auto begin = NumberOf<uint64_t>(first);
  if (!begin || *begin == 0) return false;
  failure->first = failure->last = *begin;
  if (!last) return true;
  const auto end = last->empty() ? std::optional(std::numeric_limits<uint64_t>::max())
                                 : NumberOf<uint64_t>(*last);
  if (!end || *end < *begin) return false;
  failure->last = *end;
  return true;
}

Mistake ReadPoint(const std::string& value, std::vector<PlannedFailure>* points) {
  const auto [what, hits] = SplitAt(value, "@");
  const auto [name, action] = SplitAt(what, ":");
  PlannedFailure failure;
  std::vector<std::string> names;
  for (const FailpointName& known : kFailpointNames) names.emplace_back(known.name);
  while (failure.point < names.size() && names[failure.point] != name) ++failure.point;
  if (failure.point == names.size()) {
    return "there is no failpoint \"" + name + "\"" + DidYouMean(name, names) +
           "; --faults=list prints them";
  }
  const auto [word, ms] = SplitAt(action.value_or(""), "=");
  const std::optional<int64_t> sleep_ms = ms ? MsOf(*ms) : std::nullopt;
  const std::map<std::string, FailpointAction> words = {{"crash", FailpointAction::kCrash},
                                                        {"exit", FailpointAction::kExit},
                                                        {"error", FailpointAction::kError},
                                                        {"sleep", FailpointAction::kSleep}};
  const auto found = words.find(word);
  const bool sleeps = found != words.end() && found->second == FailpointAction::kSleep;
  if (found == words.end() || sleeps != sleep_ms.has_value() || (ms && !sleeps)) {
    return "expected NAME:crash, NAME:exit, NAME:error or NAME:sleep=50ms";
  }
  failure.action = found->second;
  failure.sleep_ms = sleep_ms.value_or(0);
  if (failure.action == FailpointAction::kError && !kFailpointNames[failure.point].can_fail) {
    return "no error can come out of this failpoint; crash, exit and sleep=50ms can";
  }
  if (!ReadHits(hits, &failure)) {
    return "expected @N, @N.. or @N..M behind it: from which hit on, counted from 1, to which";
  }
  points->push_back(failure);
  return "";
}

Mistake ReadRule(const std::string& rule, Faults* faults) {
  const auto [word, given] = SplitAt(rule, "=");
  const std::string value = given.value_or("");
  FrameFaults* frames = &faults->frames;
  const auto file = [&](FileFault::Kind kind) {
    return [&, kind] { return ReadFile(kind, value, &faults->files); };
  };
  const std::map<std::string, std::function<Mistake()>> rules = {
      {"drop", [&] { return ReadPart(value, &frames->drop); }},
      {"repeat", [&] { return ReadPart(value, &frames->repeat); }},
      {"reorder", [&] { return ReadPart(value, &frames->reorder); }},
      {"late", [&] { return ReadLate(value, frames); }},
      {"cut", [&] { return ReadCut(value, frames); }},
      {"full", file(FileFault::Kind::kFull)},
      {"failing", file(FileFault::Kind::kFailing)},
      {"slow", file(FileFault::Kind::kSlow)},
      {"torn", file(FileFault::Kind::kTorn)},
      {"point", [&] { return ReadPoint(value, &faults->points); }},
      {"seed", [&]() -> Mistake {
         const auto seed = NumberOf<uint64_t>(value);
         frames->seed = seed.value_or(0);
         return seed ? "" : "expected a whole number of at least 0";
       }}};
  if (rule == "count") return "";
  const auto found = rules.find(word);
  if (found != rules.end()) return found->second();
  std::vector<std::string> known = {"count", "list"};
  for (const auto& [name, read] : rules) known.push_back(name);
  return "there is no such rule" + DidYouMean(word, known) + "; --help shows them";
}

}  // namespace

Result<Faults> ParseFaults(const std::string& text) {
  Faults faults;
  faults.armed = !text.empty();
  std::optional<std::string> rest = text;
  for (int number = 1; rest && !text.empty(); ++number) {
    auto [rule, behind] = SplitAt(*rest, ",");
    if (const Mistake mistake = ReadRule(rule, &faults); !mistake.empty()) {
      return Status(Code::kInvalidArgument,
                    "--faults: rule " + std::to_string(number) + ", \"" + rule + "\": " + mistake);
    }
    rest = std::move(behind);
  }
  return faults;
}

std::string ListFailpoints() {
  std::string text;
  for (const FailpointName& point : kFailpointNames) {
    text += std::string(point.name) + (point.can_fail ? " (error)\n" : "\n");
  }
  return text;
}

std::unique_ptr<Transport> Faults::Around(std::unique_ptr<Transport> transport) const {
  if (!frames.any()) return transport;
  return std::make_unique<FaultTransport>(std::move(transport), frames, NewSystemClock());
}

std::unique_ptr<FileSystem> Faults::Around(std::unique_ptr<FileSystem> inner) const {
  if (files.empty()) return inner;
  return NewFaultFileSystem(std::move(inner), {files, nullptr, nullptr}, NewSystemClock());
}

}  // namespace hdps
