// Follows pulls and pushes through the network.
#include "tests/sim/staleness/age_trace.h"

#include <glog/logging.h>

#include <algorithm>

#include "common/base/hash.h"
#include "common/protocol/message_frames.h"
#include "common/telemetry/figure_records.h"

namespace hdps::sim {
namespace {

constexpr FigureId kAges = FigureNamed("hdps_server_push_staleness_clocks");

uint64_t BytesOf(const Frame& frame) {
  uint64_t hash = 0;
  const auto add = [&hash](const Buffer& buffer) {
    for (const std::byte byte : buffer.bytes()) {
      hash = MixBits(hash ^ static_cast<uint64_t>(byte)) + 0x9e3779b97f4a7c15u;
    }
  };
  add(frame.envelope);
  for (const Buffer& section : frame.sections) add(section);
  return hash;
}

template <typename Message>
bool Is(const Frame& frame, Message* message) {
  return frame.header.kind == static_cast<uint16_t>(Message::kKind) &&
         DecodeMessage(frame, message).ok();
}

}  // namespace

AgeTrace::AgeTrace(SimNetwork& network, uint32_t workers) : workers_(workers) {
  network.OnSend([this](PeerId from, PeerId to, Frame* frame) { Sent(from, to, *frame); });
  network.OnGiven([this](PeerId to, PeerId from, const Frame* frame) {
    if (frame != nullptr) Given(to, from, *frame);
  });
}

void AgeTrace::Sent(PeerId from, PeerId to, const Frame& frame) {
  const uint64_t id = frame.header.request_id;
  PullRequest pull;
  PullReply rows;
  PushRequest push;
  PushAck ack;
  if (Is(frame, &pull)) {
    if (pull.mode != PullMode::kTrain && pull.mode != PullMode::kPrefetch) return;
    pulls_[{from, to, id}].clock = pull.clock;
    for (const TableKeys& table : pull.tables) {
      if (table.num_keys > 0) tables_[{from, to, pull.clock}].insert(table.table.value);
    }
  } else if (Is(frame, &rows)) {
    const auto asked = pulls_.find({to, from, id});
    if (asked == pulls_.end() || rows.code != Code::kOk) return;
    asked->second.answers.emplace_back(BytesOf(frame), taken_[from]);
  } else if (Is(frame, &push)) {
    push_clocks_[{from, to, push.sequence.value}] = push.clock;
  } else if (Is(frame, &ack)) {
    const Request request{to, from, ack.sequence.value};
    if (ack.code == Code::kOk && acknowledged_.insert(request).second) {
      Taken(to, from, push_clocks_.at(request));
    }
  }
}

void AgeTrace::Given(PeerId to, PeerId from, const Frame& frame) {
  PullReply rows;
  if (!Is(frame, &rows) || rows.code != Code::kOk) return;
  const uint64_t id = frame.header.request_id;
  const auto asked = pulls_.find({to, from, id});
  if (asked == pulls_.end() || std::exchange(asked->second.given, true)) return;
  const auto& answers = asked->second.answers;
  const auto answer =
      std::ranges::find(answers, BytesOf(frame), [](const auto& one) { return one.first; });
  CHECK(answer != answers.end()) << "an answer that nobody sent";
  Read& read = reads_[{to, from, asked->second.clock}];
  if (id >= read.request) read = {id, answer->second};
}

void AgeTrace::Taken(PeerId worker, PeerId server, Clock clock) {
  const uint64_t taken = taken_[server]++;
  const auto read = reads_.find({worker, server, clock});
  if (read == reads_.end()) return;
  const uint64_t missed = taken - read->second.taken;
  const uint64_t age = (missed + workers_ - 1) / workers_;
  for (const uint32_t table : tables_[{worker, server, clock}]) {
    Ages& ages = ages_[{server, table}];
    ages.buckets.resize(kClockBounds.size() + 1);
    size_t bucket = 0;
    while (bucket < kClockBounds.size() && kClockBounds[bucket] < static_cast<int64_t>(age)) {
      ++bucket;
    }
    ++ages.buckets[bucket];
    ages.sum += age;
    ++pushes_;
    old_pushes_ += age > 1;
  }
}

std::string AgeTrace::Compare(PeerId server, const Readings& readings) const {
  const FigureLayout layout(FigureRole::kServer, kTables);
  CHECK_EQ(readings.size(), layout.size());
  const size_t width = FigureLayout::WidthOf(RecordOf(kAges));
  std::string differences;
  for (uint32_t table = 0; table < kTables; ++table) {
    const auto found = ages_.find({server, table});
    std::vector<uint64_t> wanted(width);
    if (found != ages_.end()) {
      std::ranges::copy(found->second.buckets, wanted.begin());
      wanted.back() = found->second.sum;
    }
    const auto told =
        readings.begin() + static_cast<ptrdiff_t>(layout.OffsetOf(kAges) + table * width);
    for (size_t i = 0; i < width; ++i) {
      if (told[static_cast<ptrdiff_t>(i)] == wanted[i]) continue;
      differences += "table " + std::to_string(table) + ", number " + std::to_string(i) +
                     ": told " + std::to_string(told[static_cast<ptrdiff_t>(i)]) +
                     ", the trace has " + std::to_string(wanted[i]) + "; ";
    }
  }
  return differences;
}

}  // namespace hdps::sim
