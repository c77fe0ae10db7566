// Connects two ends by real sockets: transports in two processes, and bare sockets and node loops
// on two threads.
#include "benchmarks/clusters/wire_ends.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/yardsticks/row_yardsticks.h"
#include "common/net/node_loop.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/random.h"

namespace hdps {
namespace {

// Returns the same name in both processes.
PeerName NameFrom(uint8_t number) {
  return PeerNameOf(std::array<std::byte, 32>{static_cast<std::byte>(number)});
}
const PeerName kFirstName = NameFrom(1), kSecondName = NameFrom(2);
const PeerId kFirst = kFirstName.peer, kSecond = kSecondName.peer;
constexpr int64_t kWaitMs = 20000;

// Keeps the compiler from dropping the reads.
std::atomic<uint64_t> seen_sum{0};

void Look(std::span<const uint64_t> words) {
  uint64_t sum = 0;
  for (const uint64_t word : words) sum += word;
  seen_sum.fetch_add(sum, std::memory_order_relaxed);
}

Buffer FilledPart(size_t bytes) {
  std::span<std::byte> filled;
  Buffer part = Buffer::Allocate(bytes, &filled);
  std::fill(filled.begin(), filled.end(), std::byte{1});
  return part;
}

// Runs one end: sends parts while the window allows, and receives parts. The view of a frame is the
// number of parts its sender has received.
bool RunEnd(Transport& transport, PeerId peer, const WireLoad& load, size_t sending,
            size_t receiving) {
  const Buffer part = FilledPart(load.part_bytes);
  const size_t tell_every = std::max<size_t>(load.window / 4, 1);
  size_t sent = 0, acknowledged = 0, received = 0, told = 0;
  const auto send = [&](bool with_part) {
    Frame frame;
    frame.header.view = told = received;
    frame.header.request_id = load.round;
    if (with_part) frame.sections.push_back(part);
    transport.Send(peer, std::move(frame));
  };
  while (acknowledged < sending || received < receiving) {
    for (; sent < sending && sent - acknowledged < load.window; ++sent) send(true);
    PeerId from;
    Frame frame;
    if (!transport.Receive(kWaitMs, &from, &frame)) return false;
    if (frame.header.request_id != load.round) continue;
    acknowledged = frame.header.view;
    if (frame.sections.empty()) continue;
    ++received;
    if (load.look) Look(frame.sections[0].As<uint64_t>());
    if (received - told >= tell_every || received == receiving) send(false);
  }
  return true;
}

// Returns the bytes per second if both functions together move `bytes` at the same time.
double BytesPerSecond(size_t bytes, const std::function<bool()>& first,
                      const std::function<bool()>& second) {
  bool done[2] = {false, false};
  const double seconds = SecondsOf([&] {
    const auto thread = StartThread("second", [&] { done[1] = second(); });
    const auto other = StartThread("first", [&] { done[0] = first(); });
    other->Join();
    thread->Join();
  });
  return done[0] && done[1] ? static_cast<double>(bytes) / seconds : 0;
}

size_t BytesOf(const WireLoad& load) {
  return load.part_bytes * load.parts * (load.one_way ? 1 : 2);
}

// Runs one end of a socket: sends and receives all parts in any order the socket allows.
bool PumpSocket(int end, const WireLoad& load, size_t sending, size_t receiving) {
  const Buffer part = FilledPart(load.part_bytes);
  std::vector<uint64_t> in(load.part_bytes / sizeof(uint64_t));
  size_t out_left = sending, in_left = receiving;
  while (out_left > 0 || in_left > 0) {
    pollfd ready = {end, static_cast<int16_t>((out_left > 0 ? POLLOUT : 0) | POLLIN), 0};
    if (poll(&ready, 1, static_cast<int>(kWaitMs)) <= 0) return false;
    if ((ready.revents & POLLOUT) != 0) {
      const size_t at = out_left % load.part_bytes;
      const size_t bytes = at == 0 ? load.part_bytes : at;  // Remaining bytes of the current part.
      const ssize_t n =
          send(end, part.data() + (load.part_bytes - bytes), bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n > 0) out_left -= static_cast<size_t>(n);
    }
    if ((ready.revents & POLLIN) != 0) {
      const ssize_t n = recv(end, in.data(), std::min(in_left, load.part_bytes), MSG_DONTWAIT);
      if (n == 0) return false;
      if (n > 0) in_left -= static_cast<size_t>(n);
      if (n > 0 && load.look) Look(std::span(in).first(static_cast<size_t>(n) / sizeof(uint64_t)));
    }
  }
  return true;
}

}  // namespace

// ---- Transports.

namespace {

Status OpenEnds(const std::string& kind, const std::string& scratch,
                std::unique_ptr<Transport> (&ends)[2]) {
  std::string address = "tcp://127.0.0.1:0";
  const std::shared_ptr<InprocHub> hub = NewInprocHub();
  const PeerName selves[2] = {kFirstName, kSecondName};
  for (int i = 0; i < 2; ++i) {
    // Without shared memory, peers of one machine use TCP too.
    const TransportOptions options = {.self = selves[i], .shared_bytes_per_peer = 0};
    ends[i] = kind == "inproc" ? NewInprocTransport(hub, options) : NewZmqTransport(options);
  }
  if (kind == "inproc") address = "inproc://second";
  if (kind == "ipc") {
    address = "ipc://" + JoinPath(scratch, "wire_" + std::to_string(NewPeerId().value));
  }
  HDPS_ASSIGN_OR_RETURN(const std::string listening, ends[1]->Listen(address));
  return ends[0]->Connect(kSecond, listening);
}

}  // namespace

namespace {

// Messages of the near end to the far one between exchanges: a load as its bytes, or the end.
constexpr uint16_t kLoadKind = 1, kEndKind = 2;

Result<TransportOptions> OptionsOf(const PeerName& self, size_t shared_bytes,
                                   const std::string& keys) {
  TransportOptions options;
  options.self = self;
  options.shared_bytes_per_peer = shared_bytes;
  if (keys.empty()) return options;
  HDPS_ASSIGN_OR_RETURN(options.keys,
                        KeyFolder::Open(NewPosixFileSystem(), keys, {KeyRole::kServer}));
  return options;
}

// Makes a folder with new keys; both ends use that of a server.
Result<std::string> MakeKeys(const BenchSetting& setting) {
  const std::string folder = JoinPath(setting.scratch, "keys_" + std::to_string(NewPeerId().value));
  ChildProcess keygen({Beside(setting.program, "hdps"), "keygen", "--out=" + folder},
                      JoinPath(setting.scratch, "keygen.log"));
  if (keygen.Wait() == 0) return folder;
  return Status(Code::kUnavailable, "benchmark: no keys were made; is hdps beside hdps-bench?");
}

Frame WordOf(uint16_t kind, const WireLoad& load) {
  Frame frame;
  frame.header.kind = kind;
  frame.envelope = Buffer::CopyOf(std::as_bytes(std::span(&load, 1)));
  return frame;
}

}  // namespace

Result<std::unique_ptr<TransportEnds>> TransportEnds::Make(const std::string& kind,
                                                           const BenchSetting& setting,
                                                           size_t shared_bytes,
                                                           WireKeys with_keys) {
  std::string keys;
  if (with_keys != WireKeys::kNone) {
    HDPS_ASSIGN_OR_RETURN(keys, MakeKeys(setting));
  }
  HDPS_ASSIGN_OR_RETURN(TransportOptions options, OptionsOf(kFirstName, shared_bytes, keys));
  options.data_port = with_keys == WireKeys::kEncrypted;
  auto ends = std::make_unique<TransportEnds>();
  ends->near_ = NewZmqTransport(options);
  std::string address = "tcp://127.0.0.1:0";
  if (kind == "ipc") {
    address = "ipc://" + JoinPath(setting.scratch, "wire_" + std::to_string(NewPeerId().value));
  }
  HDPS_ASSIGN_OR_RETURN(address, ends->near_->Listen(address));
  ends->far_ = std::make_unique<ChildProcess>(
      std::vector<std::string>{setting.program, "--far_end=" + address,
                               "--far_end_shared_bytes=" + std::to_string(shared_bytes),
                               "--far_end_keys=" + keys},
      JoinPath(setting.scratch, "far_end.log"));
  PeerId from;
  Frame hello;
  if (!ends->near_->Receive(kWaitMs, &from, &hello)) {
    return Status(Code::kUnavailable, "benchmark: the other end did not come");
  }
  return ends;
}

TransportEnds::~TransportEnds() {
  near_->Send(kSecond, WordOf(kEndKind, {}));
  near_.reset();  // Sends what is left.
  if (far_ != nullptr) far_->Wait();
}

double TransportEnds::Exchange(WireLoad load) {
  load.round = ++rounds_;
  const size_t back = load.one_way ? 0 : load.parts;
  bool done = false;
  const double seconds = SecondsOf([&] {
    near_->Send(kSecond, WordOf(kLoadKind, load));
    done = RunEnd(*near_, kSecond, load, load.parts, back);
  });
  return done ? static_cast<double>(BytesOf(load)) / seconds : 0;
}

Status FarEnd(const std::string& address, size_t shared_bytes, const std::string& keys) {
  HDPS_ASSIGN_OR_RETURN(const TransportOptions options, OptionsOf(kSecondName, shared_bytes, keys));
  const std::unique_ptr<Transport> far = NewZmqTransport(options);
  HDPS_RETURN_IF_ERROR(far->Connect(kFirst, address));
  far->Send(kFirst, Frame());
  PeerId from;
  Frame frame;
  while (far->Receive(kWaitMs, &from, &frame)) {
    if (frame.header.kind == kEndKind) return Status();
    WireLoad load;
    if (frame.header.kind != kLoadKind || frame.envelope.size() != sizeof(load)) continue;
    std::memcpy(static_cast<void*>(&load), frame.envelope.data(), sizeof(load));
    const size_t sending = load.one_way ? 0 : load.parts;
    frame = Frame();
    if (!RunEnd(*far, kFirst, load, sending, load.parts)) break;
  }
  return Status(Code::kUnavailable, "benchmark: the near end is silent");
}

Result<double> ExchangeOverSocket(const std::string& kind, const WireLoad& load) {
  HDPS_ASSIGN_OR_RETURN(const auto ends, SocketPair(kind));
  const size_t there = load.part_bytes * load.parts, back = load.one_way ? 0 : there;
  const double rate = BytesPerSecond(
      BytesOf(load), [&] { return PumpSocket(ends[0], load, there, back); },
      [&] { return PumpSocket(ends[1], load, back, there); });
  for (const int end : ends) close(end);
  return rate;
}

// ---- Round trip.

namespace {

// Sends a small frame and again after each reply, `left` times, and notes the time of each. With
// `left` 0 it replies instead, until `stop`.
class PingNode : public Node {
 public:
  PingNode(PeerId peer, size_t left, MonotonicClock& clock, const std::atomic<bool>* stop)
      : peer_(peer), left_(left), asks_(left > 0), clock_(clock), stop_(stop) {}

  void OnFrame(PeerId from, Frame frame) override {
    if (!asks_) {
      output_.frames.push_back({from, std::move(frame)});
      return;
    }
    micros.push_back(static_cast<double>(clock_.NowNs() - asked_ns_) * 1e-3);
    Ask();
  }
  void OnTick(TimeMs) override {
    if (asks_ && micros.empty() && asked_ns_ == 0) Ask();
  }
  Output TakeOutput() override { return std::exchange(output_, Output()); }
  void RequestStop(const std::string&) override {}  // Not used here.
  bool done() const override { return asks_ ? left_ == 0 : stop_->load(); }
  int exit_status() const override { return 0; }
  const std::string& exit_reason() const override { return reason_; }

  std::vector<double> micros;

 private:
  void Ask() {
    if (left_ == 0) return;
    --left_;
    asked_ns_ = clock_.NowNs();
    Frame frame;
    frame.envelope = envelope_;
    output_.frames.push_back({peer_, std::move(frame)});
  }

  const Buffer envelope_ = FilledPart(64);
  const PeerId peer_;
  size_t left_;
  const bool asks_;
  MonotonicClock& clock_;
  const std::atomic<bool>* const stop_;
  int64_t asked_ns_ = 0;
  const std::string reason_;
  Output output_;
};

}  // namespace

Result<RoundTrip> LoopRoundTrip(const std::string& kind, const std::string& scratch, size_t count) {
  std::unique_ptr<Transport> ends[2];
  HDPS_RETURN_IF_ERROR(OpenEnds(kind, scratch, ends));
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  std::atomic<bool> stop{false};
  PingNode asker(kSecond, count, *clock, nullptr), answerer(kFirst, 0, *clock, &stop);
  NodeLoopOptions options;
  options.drain_ms = 0;
  const auto far = StartThread("far", [&] { RunNodeLoop(answerer, *ends[1], *clock, options); });
  const auto near = StartThread("near", [&] { RunNodeLoop(asker, *ends[0], *clock, options); });
  near->Join();
  stop = true;
  ends[1]->Wake();
  far->Join();
  if (asker.micros.empty()) return Status(Code::kUnavailable, "benchmark: no answer came");
  return RoundTrip{MedianOf(asker.micros), QuantileOf(asker.micros, 0.99)};
}

}  // namespace hdps
