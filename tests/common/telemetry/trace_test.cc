// Tests what is recorded, how clocks are brought together, and the file of a trace.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/protocol/trace/trace_messages.h"
#include "common/protocol/trace/trace_sender.h"
#include "common/telemetry/clock_fit.h"
#include "common/telemetry/span_recorder.h"
#include "common/telemetry/trace_file.h"
#include "tests/common/platform/settable_clock.h"

namespace hdps {
namespace {

constexpr int64_t kMs = 1'000'000;

TEST(SpanRecorder, RecordsTheStepsThatWereAskedForAlone) {
  SettableClock clock;
  SpanRecorder recorder(clock);
  const auto run = [&recorder](Clock from, Clock until) {
    for (Clock step = from; step < until; ++step) {
      recorder.BeginStep(step);
      const RecordedSpan span(&recorder, "step", "step");
      const RecordedSpan request(&recorder, {step, 7, true}, "pull", "pull");
    }
  };
  run(0, 5);
  EXPECT_EQ(recorder.size(), 0u);
  recorder.Record(10, 12);
  run(8, 15);
  const SpanPart part = recorder.Take();
  ASSERT_EQ(part.spans.size(), 4u);
  for (const Span& span : part.spans) {
    EXPECT_TRUE(span.step == 10 || span.step == 11);
    EXPECT_EQ(span.serves, part.words[span.track] == "pull" ? 1u : 0u);
  }
  recorder.RecordFirst(2);
  run(20, 25);
  EXPECT_EQ(recorder.Take().spans.back().step, 21);
  recorder.Stop();
  run(20, 22);
  EXPECT_EQ(recorder.Take().spans.size(), 0u);
}

TEST(SpanRecorder, CountsWhatItLeavesOut) {
  SettableClock clock;
  SpanRecorder recorder(clock);
  recorder.Record(0, 1);
  for (size_t i = 0; i < SpanRecorder::kSpansMax + 3; ++i) recorder.Add("t", "n", 0, 1, {0});
  EXPECT_EQ(recorder.left_out(), 3u);
  EXPECT_EQ(recorder.Take(10).spans.size(), 10u);
  EXPECT_EQ(recorder.size(), SpanRecorder::kSpansMax - 10);
}

// Two workers ask two servers, whose clocks are wrong by up to what is known of them.
TEST(ClockFit, EachRequestIsServedBetweenItsEnds) {
  const std::vector<int64_t> wrong_ns = {0, 300'000, -400'000, 5 * kMs};
  const auto known_ns = [](size_t m) { return m == 3 ? int64_t{-1} : int64_t{500'000}; };
  Trace trace;
  for (size_t m = 0; m < wrong_ns.size(); ++m) {
    trace.members.push_back({"member " + std::to_string(m),
                             {SpanPart{{"track", "name"}, {}}},
                             0,
                             /*offset_ns=*/0,
                             known_ns(m)});
  }
  const auto add = [&](size_t m, int64_t begin_ns, int64_t end_ns, uint64_t request, bool serves) {
    trace.members[m].parts[0].spans.push_back({.begin_ns = begin_ns - wrong_ns[m],
                                               .end_ns = end_ns - wrong_ns[m],
                                               .request = request,
                                               .serves = serves ? 1u : 0u});
  };
  uint64_t request = 0;
  for (int64_t at = 0; at < 100; ++at) {
    for (size_t worker : {0, 1}) {
      for (size_t server : {2, 3}) {
        const int64_t begin = at * kMs, there = begin + 20'000 + at % 7 * 5'000;
        add(worker, begin, there + 40'000 + at % 5 * 7'000, ++request, false);
        add(server, there, there + 20'000, request, true);
      }
    }
  }
  const auto within = [&trace] {
    std::map<uint64_t, std::pair<int64_t, int64_t>> asked;
    int served = 0;
    for (const TracedMember& member : trace.members) {
      for (const Span& span : member.parts[0].spans) {
        const int64_t begin = span.begin_ns + member.offset_ns;
        const int64_t end = span.end_ns + member.offset_ns;
        if (span.serves == 0) {
          asked[span.request] = {begin, end};
        } else {
          served += asked[span.request].first <= begin && end <= asked[span.request].second;
        }
      }
    }
    return served;
  };
  EXPECT_LT(within(), 100);
  FitClocks(&trace);
  EXPECT_EQ(within(), 400);
  // A clock that is known moves no further than it must.
  for (size_t m = 0; m < 3; ++m) EXPECT_LT(std::abs(trace.members[m].offset_ns), kMs);
  const int64_t before_ns = trace.members[3].offset_ns;
  FitClocks(&trace);
  EXPECT_EQ(trace.members[3].offset_ns, before_ns) << "what fits stays";
}

TEST(ClockFit, RequestsThatContradictEachOtherMoveNothing) {
  Trace trace;
  trace.members = {{"worker 0", {SpanPart{{"t", "n"}, {}}}, 0, 0, 1000},
                   {"server 0", {SpanPart{{"t", "n"}, {}}}, 0, 0, 1000}};
  trace.members[0].parts[0].spans = {{.begin_ns = 100, .end_ns = 200, .request = 1}};
  trace.members[1].parts[0].spans = {{.begin_ns = 0, .end_ns = 300, .request = 1, .serves = 1}};
  FitClocks(&trace);
  EXPECT_EQ(trace.members[0].offset_ns, 0);
  EXPECT_EQ(trace.members[1].offset_ns, 0);
}

TEST(TraceMessages, SpansWithWordsThatAreNotThereAreRefused) {
  const SpanPart part{{"track", "name"}, {{.begin_ns = 1, .end_ns = 2, .track = 0, .name = 1}}};
  const Result<SpanPart> same = Unpack(Pack(part));
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same->words, part.words);
  EXPECT_FALSE(Unpack(Pack({{"track"}, part.spans})).ok());
  EXPECT_FALSE(Unpack(Pack({part.words, {{.begin_ns = 2, .end_ns = 1}}})).ok());
}

// The scheduler's clock is ahead by 100 ms. Trips whose ways differ bound that from both sides.
TEST(TraceSender, BringsClocksTogetherByAllRoundTrips) {
  SettableClock clock;
  SpanRecorder recorder(clock);
  TraceSender sender(recorder);
  const auto beat = [&](uint64_t number, int64_t there_ms, int64_t back_ms) {
    sender.OnBeat(number);
    const int64_t served = (clock.now_ms + there_ms + 100) * kMs;
    clock.now_ms += there_ms + back_ms;
    sender.OnAck({{1}, number, served, {9, TracePhase::kRecord, 0, 5}});
  };
  beat(1, 40, 0);                                           // The difference is 100 to 140 ms,
  beat(2, 6, 6);                                            // 94 to 106,
  beat(3, 2, 30);                                           // 70 to 102.
  EXPECT_FALSE(sender.TakePart(/*all=*/true).has_value());  // Nothing was recorded.
  recorder.Add("t", "n", 0, 1, {0});
  std::optional<TracePart> part = sender.TakePart(/*all=*/true);
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->offset_ns, 101 * kMs);
  EXPECT_EQ(part->uncertainty_ns, 1 * kMs);
  EXPECT_FALSE(part->last);
  // An answer of before that comes late begins nothing anew.
  sender.OnAck({{1}, 0, 0, {9, TracePhase::kClose, 0, 5}});
  sender.OnAck({{1}, 0, 0, {9, TracePhase::kRecord, 0, 5}});
  recorder.Add("t", "n", 0, 1, {0});
  part = sender.TakePart(/*all=*/false);
  ASSERT_TRUE(part.has_value());
  EXPECT_TRUE(part->last && part->packed.spans.empty());
  EXPECT_FALSE(sender.TakePart(/*all=*/true).has_value());
}

TEST(TraceFile, ArrowsLeadToTheServingAndBackAndOverlapsLieSideBySide) {
  Trace trace;
  trace.from = 3;
  trace.until = 4;
  trace.notes = {"a \"note\""};
  const SpanPart asks{{"pull"},
                      {{.begin_ns = 1000, .end_ns = 5000, .step = 3, .request = 77},
                       {.begin_ns = 2000, .end_ns = 6000, .step = 3, .request = 78}}};
  const SpanPart serves{
      {"pull"}, {{.begin_ns = 12'000, .end_ns = 13'000, .step = 3, .request = 77, .serves = 1}}};
  trace.members = {{"worker 0", {asks}, 0, 0, 500}, {"server 0", {serves}, 4, -10'000, 700}};
  const nlohmann::json told = nlohmann::json::parse(TraceJson(trace));
  std::map<std::string, std::vector<nlohmann::json>> by_phase;
  for (const auto& event : told["traceEvents"]) by_phase[event["ph"]].push_back(event);
  ASSERT_EQ(by_phase["X"].size(), 3u);
  EXPECT_NE(by_phase["X"][0]["tid"], by_phase["X"][1]["tid"]);
  EXPECT_EQ(by_phase["X"][2]["ts"], 1);  // Microseconds since the first span, by one clock.
  ASSERT_EQ(by_phase["s"].size(), 1u);
  ASSERT_EQ(by_phase["t"].size(), 1u);
  ASSERT_EQ(by_phase["f"].size(), 1u);
  EXPECT_EQ(by_phase["t"][0]["pid"], by_phase["X"][2]["pid"]);
  EXPECT_EQ(by_phase["f"][0]["ts"], 4);
  EXPECT_EQ(told["otherData"]["clock_uncertainty_us"]["server 0"], 0.7);
  EXPECT_EQ(told["otherData"]["spans_left_out"]["server 0"], 4);
  EXPECT_EQ(told["otherData"]["notes"][0], "a \"note\"");
  EXPECT_EQ(told["otherData"]["steps"], (nlohmann::json{3, 4}));
}

}  // namespace
}  // namespace hdps
