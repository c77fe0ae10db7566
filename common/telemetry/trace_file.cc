// Prints spans as events: metadata of processes and tracks, spans, and flows between them.
#include "common/telemetry/trace_file.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

namespace hdps {
namespace {

// A span with its place on the page.
struct Placed {
  const Span* span;
  const std::string* name;
  int64_t begin_ns, end_ns;  // By the scheduler's clock.
  size_t process, track;
};

std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Puts spans on tracks so that two of one track are disjoint, or one lies within the other.
class Tracks {
 public:
  // Requires: spans of one name come in the order of their begins, the longer first.
  size_t PlaceOf(const std::string& name, int64_t begin_ns, int64_t end_ns) {
    std::vector<Lane>& lanes = lanes_[name];
    for (Lane& lane : lanes) {
      while (!lane.ends.empty() && lane.ends.back() <= begin_ns) lane.ends.pop_back();
      if (!lane.ends.empty() && lane.ends.back() < end_ns) continue;
      lane.ends.push_back(end_ns);
      return lane.track;
    }
    names_.push_back(lanes.empty() ? name : name + " (" + std::to_string(lanes.size() + 1) + ")");
    lanes.push_back({names_.size() - 1, {end_ns}});
    return lanes.back().track;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  struct Lane {
    size_t track = 0;
    std::vector<int64_t> ends;  // Of the spans that are open, the outermost first.
  };
  std::map<std::string, std::vector<Lane>> lanes_;
  std::vector<std::string> names_;
};

class Writer {
 public:
  explicit Writer(const Trace& trace) : trace_(trace) {
    for (size_t m = 0; m < trace.members.size(); ++m) Place(m);
    for (const Placed& placed : spans_) first_ns_ = std::min(first_ns_, placed.begin_ns);
  }

  std::string Text() {
    for (const Placed& placed : spans_) WriteSpan(placed);
    WriteArrows();
    return "{\"traceEvents\": [" + text_ + "\n], \"otherData\": " + OtherData() + "}\n";
  }

 private:
  void Place(size_t process) {
    const TracedMember& member = trace_.members[process];
    std::vector<std::pair<const SpanPart*, const Span*>> all;
    for (const SpanPart& part : member.parts) {
      for (const Span& span : part.spans) all.emplace_back(&part, &span);
    }
    std::ranges::stable_sort(all, {}, [](const auto& one) {
      return std::pair(one.second->begin_ns, -one.second->end_ns);
    });
    Tracks tracks;
    for (const auto& [part, span] : all) {
      const size_t track = tracks.PlaceOf(part->words[span->track], span->begin_ns, span->end_ns);
      spans_.push_back({span, &part->words[span->name], span->begin_ns + member.offset_ns,
                        span->end_ns + member.offset_ns, process, track});
    }
    Name("process_name", process, 0, member.name);
    for (size_t t = 0; t < tracks.names().size(); ++t) {
      Name("thread_name", process, t, tracks.names()[t]);
    }
  }
  void Name(const char* what, size_t process, size_t track, const std::string& name) {
    char line[96];
    std::snprintf(line, sizeof(line), R"({"ph": "M", "pid": %zu, "tid": %zu, )", process, track);
    Begin();
    text_ +=
        line + std::string("\"name\": \"") + what + R"(", "args": {"name": )" + Quoted(name) + "}}";
  }
  void WriteSpan(const Placed& placed) {
    char line[192];
    const int64_t ns = placed.end_ns - placed.begin_ns;
    std::snprintf(line, sizeof(line), R"("pid": %zu, "tid": %zu, "ts": %.3f, "dur": %.3f)",
                  placed.process, placed.track, Us(placed.begin_ns), static_cast<double>(ns) / 1e3);
    Begin();
    text_ += R"({"ph": "X", "name": )" + Quoted(*placed.name) + ", " + line;
    if (placed.span->step >= 0) {
      text_ += R"(, "args": {"step": )" + std::to_string(placed.span->step);
      if (placed.span->request != 0) text_ += ", \"request\": \"" + IdOf(placed) + '"';
      text_ += '}';
    }
    text_ += '}';
  }
  // An arrow begins in a request, leads to each span that serves it, and ends in the request.
  void WriteArrows() {
    std::vector<const Placed*> linked;
    for (const Placed& placed : spans_) {
      if (placed.span->request != 0) linked.push_back(&placed);
    }
    std::ranges::stable_sort(linked, {}, [](const Placed* one) {
      return std::tuple(one->span->request, one->span->serves, one->begin_ns);
    });
    for (size_t i = 0; i < linked.size();) {
      size_t end = i + 1;
      while (end < linked.size() && linked[end]->span->request == linked[i]->span->request) ++end;
      if (end - i >= 2 && linked[i]->span->serves == 0 && linked[i + 1]->span->serves == 1) {
        Arrow("s", *linked[i], linked[i]->begin_ns);
        for (size_t at = i + 1; at < end; ++at) Arrow("t", *linked[at], linked[at]->begin_ns);
        Arrow("f", *linked[i], linked[i]->end_ns);
      }
      i = end;
    }
  }
  void Arrow(const char* phase, const Placed& at, int64_t ns) {
    char line[160];
    std::snprintf(line, sizeof(line), R"("pid": %zu, "tid": %zu, "ts": %.3f, "id": "%s"})",
                  at.process, at.track, Us(ns), IdOf(at).c_str());
    Begin();
    text_ += std::string(R"({"ph": ")") + phase +
             R"(", "bp": "e", "cat": "request", "name": "request", )" + line;
  }
  static std::string IdOf(const Placed& placed) {
    char id[24];
    std::snprintf(id, sizeof(id), "%llx", static_cast<unsigned long long>(placed.span->request));
    return id;
  }
  std::string OtherData() const {
    nlohmann::json clocks = nlohmann::json::object(), left_out = nlohmann::json::object();
    for (const TracedMember& member : trace_.members) {
      if (member.uncertainty_ns >= 0) {
        clocks[member.name] = static_cast<double>(member.uncertainty_ns) / 1e3;
      }
      if (member.left_out > 0) left_out[member.name] = member.left_out;
    }
    nlohmann::json other = {{"schema", 1},
                            {"clock_uncertainty_us", std::move(clocks)},
                            {"spans_left_out", std::move(left_out)},
                            {"notes", trace_.notes}};
    if (trace_.from < trace_.until) other["steps"] = {trace_.from, trace_.until};
    return other.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  double Us(int64_t ns) const { return static_cast<double>(ns - first_ns_) / 1e3; }
  void Begin() { text_ += text_.empty() ? "\n" : ",\n"; }

  const Trace& trace_;
  std::vector<Placed> spans_;
  int64_t first_ns_ = std::numeric_limits<int64_t>::max();
  std::string text_;
};

}  // namespace

std::string TraceJson(const Trace& trace) { return Writer(trace).Text(); }

std::string RunTrace::Json() const {
  Trace trace;
  const auto add = [&trace](const std::string& role, const auto& recorders) {
    for (size_t i = 0; i < recorders.size(); ++i) {
      trace.members.push_back(
          {role + " " + std::to_string(i), {recorders[i]->Take()}, recorders[i]->left_out(), 0, 0});
    }
  };
  add("worker", workers);
  add("server", servers);
  return TraceJson(trace);
}

}  // namespace hdps
