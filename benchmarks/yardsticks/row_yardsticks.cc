// Calls shards directly, sends frames back unread, and sends 64 bytes there and back.
#include "benchmarks/yardsticks/row_yardsticks.h"

#include <arpa/inet.h>
#include <glog/logging.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"

namespace hdps {
namespace {

const PeerName kNearName = NewPeerName();
const PeerId kNear = kNearName.peer, kFar{3};
constexpr float kGradient = 0.001f;

std::vector<ShardId> AllShards(uint32_t count) {
  std::vector<ShardId> shards;
  for (uint32_t s = 0; s < count; ++s) shards.push_back({s});
  return shards;
}

}  // namespace

Result<std::array<int, 2>> SocketPair(const std::string& transport) {
  std::array<int, 2> ends = {-1, -1};
  const Status failed(Code::kUnavailable, "benchmark: no bare socket");
  if (transport != "tcp") {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) return failed;
    return ends;
  }
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  ends[0] = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, name, size) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, name, &size) != 0 || connect(ends[0], name, size) != 0) {
    return failed;
  }
  ends[1] = accept(listener, nullptr, nullptr);
  close(listener);
  constexpr int kOn = 1;
  for (const int end : ends) setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof(kOn));
  return ends;
}

// ---- Rows.

RowsAlone::RowsAlone(const Job& job, int threads)
    : job_(job),
      table_(RowsTable(job)),
      executor_(NewTbbExecutor(threads)),
      rows_(job, *executor_, AllShards(job.cluster.shards)) {
  shards_.owner.assign(job.cluster.shards, ServerId{0});
}

std::vector<PushRequest> RowsAlone::RequestsFor(const KeyBatches& lists) const {
  std::vector<PushRequest> requests;
  KeySplit split;
  for (const StepKeys& list : lists) {
    const KeysOfTable table = list.OfTable(table_, job_.tables[table_.value].dim);
    split.Compute(shards_, 1, {&table, 1});
    const std::vector<float> gradients(list.keys.size() * table.row_floats, kGradient);
    PushRequest& request = requests.emplace_back();
    request.tables = split.at({0}).tables;
    request.keys = split.at({0}).keys;
    request.gradients = Buffer::CopyOf(std::span<const float>(gradients));
  }
  return requests;
}

void RowsAlone::PullAll(const std::vector<PushRequest>& requests) {
  for (const PushRequest& request : requests) {
    rows_.Read(PlanOf(request), request.keys, {.source = &read_, .to = {}});
  }
}

RequestPlan RowsAlone::PlanOf(const PushRequest& request) const {
  return *PlanRequest(job_, {rows_.ids().size()}, RowShape::kWeights, request.tables);
}

void RowsAlone::Push(const PushRequest& request) {
  PlannedPush push;
  push.request = request;
  push.list =
      std::make_shared<const KeyList>(KeyList{request.tables, request.keys, PlanOf(request)});
  rows_.Apply({&push, 1}, 1, ++step_, UpdateTerms());
}

void RowsAlone::PushAll(const std::vector<PushRequest>& requests) {
  for (const PushRequest& request : requests) Push(request);
}

void RowsAlone::PushAllWritten(const std::vector<PushRequest>& requests) {
  constexpr size_t kSlices = 32;
  for (PushRequest request : requests) {
    const size_t count = request.gradients.size() / sizeof(float);
    written_.resize(std::max(written_.size(), count));
    executor_->ParallelFor(kSlices, [&](size_t s) {
      const size_t begin = count * s / kSlices, end = count * (s + 1) / kSlices;
      FillLines(std::span(written_).subspan(begin, end - begin), kGradient);
    });
    request.gradients = Buffer(nullptr, written_.data(), count * sizeof(float));
    CHECK(rows_.CheckFloats(PlanOf(request), request.keys, request.gradients).ok());
    Push(request);
  }
}

// ---- The wire.

Result<std::unique_ptr<WireAlone>> WireAlone::Make(const std::string& transport,
                                                   const std::string& scratch, bool shared) {
  std::unique_ptr<WireAlone> wire(new WireAlone());
  std::string address = "tcp://127.0.0.1:0";
  if (transport == "inproc") {
    const std::shared_ptr<InprocHub> hub = NewInprocHub();
    wire->near_ = NewInprocTransport(hub, {.self = kNear});
    wire->far_ = NewInprocTransport(hub, {.self = kFar});
    address = "inproc://far";
  } else {
    TransportOptions near{.self = kNearName}, far{.self = kFar};
    if (!shared) near.shared_bytes_per_peer = far.shared_bytes_per_peer = 0;
    wire->near_ = NewZmqTransport(near);
    wire->far_ = NewZmqTransport(far);
    if (transport == "ipc") {
      address = "ipc://" + JoinPath(scratch, "wire_" + std::to_string(NewPeerId().value));
    }
  }
  HDPS_ASSIGN_OR_RETURN(const std::string listening, wire->far_->Listen(address));
  HDPS_RETURN_IF_ERROR(wire->near_->Connect(kFar, listening));
  WireAlone* const self = wire.get();
  wire->thread_ = StartThread("far", [self] { self->Answer(); });
  return wire;
}

WireAlone::~WireAlone() {
  stop_ = true;
  if (thread_) thread_->Join();
}

void WireAlone::Answer() {
  constexpr int64_t kWaitMs = 20;
  Buffer reply;
  while (!stop_) {
    PeerId from;
    Frame frame;
    if (!far_->Receive(kWaitMs, &from, &frame)) continue;
    const size_t bytes = frame.header.request_id;
    if (reply.size() != bytes) {
      std::span<std::byte> filled;
      reply = Buffer::Allocate(bytes, &filled);
      std::fill(filled.begin(), filled.end(), std::byte{1});
    }
    Frame answer;
    answer.header.sender = kFar.value;
    answer.sections.push_back(reply);
    far_->Send(from, std::move(answer));
  }
}

bool WireAlone::Exchange(size_t request_bytes, size_t reply_bytes, size_t count, size_t window) {
  constexpr int64_t kWaitMs = 20000;
  std::span<std::byte> filled;
  const Buffer request = Buffer::Allocate(request_bytes, &filled);
  std::fill(filled.begin(), filled.end(), std::byte{1});
  for (size_t i = 0; i < count + window; ++i) {
    PeerId from;
    Frame reply;
    if (i >= window && !near_->Receive(kWaitMs, &from, &reply)) return false;
    if (i >= count) continue;
    Frame frame;
    frame.header.sender = kNear.value;
    frame.header.request_id = reply_bytes;
    frame.sections.push_back(request);
    near_->Send(kFar, std::move(frame));
  }
  return true;
}

// ---- A bare socket.

Result<double> SocketRoundTrip(const std::string& transport, size_t count) {
  using Message = std::array<char, 64>;
  HDPS_ASSIGN_OR_RETURN(const auto ends, SocketPair(transport));
  const auto far = StartThread("far", [end = ends[1]] {
    Message message;
    while (recv(end, message.data(), message.size(), MSG_WAITALL) > 0) {
      if (send(end, message.data(), message.size(), 0) < 0) return;
    }
  });
  std::vector<double> seconds;
  Message message = {};
  for (size_t i = 0; i < count; ++i) {
    seconds.push_back(SecondsOf([&] {
      if (send(ends[0], message.data(), message.size(), 0) > 0) {
        recv(ends[0], message.data(), message.size(), MSG_WAITALL);
      }
    }));
  }
  close(ends[0]);
  far->Join();
  close(ends[1]);
  return MedianOf(seconds);
}

}  // namespace hdps
