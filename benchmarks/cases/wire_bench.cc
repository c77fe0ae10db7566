// Measures bytes over each transport beside a bare socket with the same parts, in both directions
// at once; the round trip between two node loops; and the cost of checksums and buffers.
#include <openssl/evp.h>
#include <sodium.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/clusters/wire_ends.h"
#include "benchmarks/yardsticks/row_yardsticks.h"
#include "common/base/bounded_queue.h"
#include "common/base/hash.h"
#include "common/platform/executor.h"

namespace hdps {
namespace {

constexpr char kBench[] = "wire";
constexpr double kGiga = 1e-9;
constexpr size_t kShared = size_t{64} << 20;

struct Case {
  const char* name;
  const char* kind;
  size_t shared_bytes;
  size_t part_bytes;
  bool look;
  bool one_way;
  WireKeys keys = WireKeys::kNone;
};
constexpr size_t kMiB = size_t{1} << 20, kKiB = size_t{1} << 10;
constexpr Case kCases[] = {
    {"tcp_1MiB", "tcp", 0, kMiB, false, false},
    {"ipc_1MiB", "ipc", 0, kMiB, false, false},
    {"shared_1MiB", "tcp", kShared, kMiB, false, false},
    {"shared_over_ipc", "ipc", kShared, kMiB, false, false},
    {"shared_1MiB_looked_at", "tcp", kShared, kMiB, true, false},
    {"tcp_64KiB", "tcp", 0, 64 * kKiB, false, false},
    {"shared_64KiB", "tcp", kShared, 64 * kKiB, false, false},
    {"tcp_1MiB_one_way", "tcp", 0, kMiB, false, true},
    {"keys_1MiB", "tcp", 0, kMiB, false, false, WireKeys::kCurve},
    {"keys_64KiB", "tcp", 0, 64 * kKiB, false, false, WireKeys::kCurve},
    {"keys_1MiB_one_way", "tcp", 0, kMiB, false, true, WireKeys::kCurve},
    {"sealed_1MiB", "tcp", 0, kMiB, false, false, WireKeys::kEncrypted},
    {"sealed_64KiB", "tcp", 0, 64 * kKiB, false, false, WireKeys::kEncrypted},
    {"sealed_1MiB_one_way", "tcp", 0, kMiB, false, true, WireKeys::kEncrypted},
    {"keys_shared_1MiB", "tcp", kShared, kMiB, false, false, WireKeys::kCurve},
    {"shared_1MiB_one_way", "tcp", kShared, kMiB, false, true},
};

WireLoad LoadOf(const BenchSetting& setting, const Case& c) {
  WireLoad load;
  load.part_bytes = c.part_bytes;
  load.parts = (setting.quick ? size_t{256} << 20 : size_t{1} << 30) / c.part_bytes;
  load.look = c.look;
  load.one_way = c.one_way;
  return load;
}

// The case, the bare socket of its kind, and what is shared, over CURVE or encrypted by a session
// beside the same without.
Status RunCase(const BenchSetting& setting, const Case& c, BenchReport& report) {
  PrintProgress(kBench, c.name);
  const WireLoad load = LoadOf(setting, c);
  HDPS_ASSIGN_OR_RETURN(const auto ends,
                        TransportEnds::Make(c.kind, setting, c.shared_bytes, c.keys));
  HDPS_ASSIGN_OR_RETURN(const auto plain, TransportEnds::Make("tcp", setting, 0));
  WireLoad warm = load;
  warm.parts = 64;
  ends->Exchange(warm);  // Warms up: connects, and agrees on shared memory.
  plain->Exchange(warm);
  const uint64_t shared_before = ends->bytes_shared();
  bool socket_failed = false;
  const auto socket = [&] {
    const Result<double> rate = ExchangeOverSocket(c.kind, load);
    socket_failed = socket_failed || !rate.ok();
    return rate.ok() ? kGiga * *rate : 0;
  };
  const bool shares = c.shared_bytes > 0, beside_plain = shares || c.keys != WireKeys::kNone;
  std::vector<double> a_core_second[2];  // GB of the case, and of the bare socket.
  const double bytes =
      static_cast<double>(load.part_bytes * load.parts) * (load.one_way ? 1 : 2) * kGiga;
  const auto with_cpu = [&](size_t figure, const std::function<double()>& exchange) {
    const double before = ends->CpuSeconds();
    const double rate = exchange();
    a_core_second[figure].push_back(bytes / (ends->CpuSeconds() - before));
    return rate;
  };
  const auto samples = InterleavedSamples(
      setting.repeats, {[&] { return with_cpu(0, [&] { return kGiga * ends->Exchange(load); }); },
                        [&] { return with_cpu(1, socket); },
                        [&] { return beside_plain ? kGiga * plain->Exchange(load) : 1.0; }});
  for (const double sample : samples[0]) {
    if (sample > 0 && !socket_failed) continue;
    return {Code::kUnavailable, std::string("wire ") + c.name + ": not all parts arrived"};
  }
  report.AddBeside(kBench, c.name, "moved", "GB/s", samples[0],
                   std::strcmp(c.kind, "tcp") == 0 ? "bare tcp socket" : "bare unix socket",
                   samples[1]);
  report.AddBeside(kBench, c.name, "moved, a core-second", "GB", a_core_second[0], "bare socket",
                   a_core_second[1]);
  if (beside_plain) {
    report.AddBeside(kBench, c.name, "moved", "GB/s", samples[0], "zeromq tcp", samples[2]);
  }
  if (!shares) return Status();
  const double moved = static_cast<double>(load.part_bytes * load.parts) * setting.repeats;
  report.Add(kBench, c.name, "through shared memory", "of the bytes",
             {static_cast<double>(ends->bytes_shared() - shared_before) / moved});
  return Status();
}

// ---- Round trip.

Status RunRoundTrip(const BenchSetting& setting, const std::string& kind, bool busy,
                    BenchReport& report) {
  const std::string name = "round_trip_" + kind + (busy ? "_busy" : "_idle");
  if (!setting.Wants(name)) return Status();
  PrintProgress(kBench, name);
  const size_t count = setting.quick ? 500 : 3000;
  // The busy case has one thread that computes all the time.
  std::atomic<bool> stop{false};
  std::unique_ptr<Thread> burner;
  if (busy) {
    burner = StartThread("burner", [&stop] {
      for (volatile uint64_t i = 0; !stop.load(std::memory_order_relaxed);) i = i + 1;
    });
  }
  std::vector<double> medians, slowest, sockets;
  Status failed;
  for (int repeat = 0; repeat < setting.repeats && failed.ok(); ++repeat) {
    const Result<RoundTrip> trip = LoopRoundTrip(kind, setting.scratch, count);
    const Result<double> bare = SocketRoundTrip(kind, count);
    failed = trip.ok() ? bare.status() : trip.status();
    if (!failed.ok()) break;
    medians.push_back(trip->median);
    slowest.push_back(trip->p99);
    sockets.push_back(*bare * 1e6);
  }
  stop = true;
  if (burner) burner->Join();
  HDPS_RETURN_IF_ERROR(failed);
  report.AddBeside(kBench, name, "round trip", "us", medians,
                   kind == "tcp" ? "bare tcp socket" : "bare unix socket", sockets);
  report.Add(kBench, name, "round trip p99", "us", slowest);
  return Status();
}

// ---- Parts of the work.

void RunChecksum(const BenchSetting& setting, BenchReport& report) {
  if (!setting.Wants("checksum_1MiB")) return;
  const std::vector<std::byte> bytes(kMiB, std::byte{3});
  std::vector<std::byte> copy(kMiB);
  constexpr int kRounds = 200;
  uint64_t sum = 0;
  const auto rate = [&](const std::function<void()>& work) {
    const double before = ThreadCpuSeconds();
    for (int i = 0; i < kRounds; ++i) work();
    return kGiga * kRounds * kMiB / (ThreadCpuSeconds() - before);
  };
  const auto samples = InterleavedSamples(
      setting.repeats, {[&] { return rate([&] { sum ^= HashBytes(bytes, sum); }); },
                        [&] {
                          return rate([&] {
                            std::memcpy(copy.data(), bytes.data(), kMiB);
                            sum += static_cast<uint64_t>(copy[sum % kMiB]);
                          });
                        }});
  report.AddBeside(kBench, "checksum_1MiB", "hashed", "GB/s", samples[0], "copied", samples[1]);
}

// Encrypts one mebibyte with an AEAD of libcrypto, repeatedly with one key.
class AeadRounds {
 public:
  AeadRounds(const EVP_CIPHER* cipher, bool encrypt) : context_(EVP_CIPHER_CTX_new()) {
    const std::vector<uint8_t> key(static_cast<size_t>(EVP_CIPHER_get_key_length(cipher)), 5);
    EVP_CipherInit_ex(context_, cipher, nullptr, key.data(), nullptr, encrypt ? 1 : 0);
  }
  ~AeadRounds() { EVP_CIPHER_CTX_free(context_); }
  AeadRounds(const AeadRounds&) = delete;
  AeadRounds& operator=(const AeadRounds&) = delete;
  void Run(const uint8_t* from, uint8_t* to) {
    uint8_t nonce[12] = {}, none[16];
    std::memcpy(nonce, &++counter_, sizeof(counter_));
    int made = 0;
    EVP_CipherInit_ex(context_, nullptr, nullptr, nullptr, nonce, -1);
    EVP_CipherUpdate(context_, to, &made, from, static_cast<int>(kMiB));
    EVP_CipherFinal_ex(context_, none, &made);  // Fails when decrypting, because no tag was given.
  }

 private:
  EVP_CIPHER_CTX* const context_;
  uint64_t counter_ = 0;
};

// Measures encrypting and decrypting beside what CURVE of libzmq does with a message, and beside a
// tag that leaves the bytes readable, on one core.
void RunEncryption(const BenchSetting& setting, BenchReport& report) {
  if (!setting.Wants("seal_alone_1MiB")) return;
  constexpr int kRounds = 200;
  const std::vector<uint8_t> bytes(kMiB, 3), key(crypto_onetimeauth_KEYBYTES, 5);
  std::vector<uint8_t> encrypted(kMiB);
  uint8_t tag[crypto_onetimeauth_BYTES];
  const uint8_t nonce[crypto_secretbox_NONCEBYTES] = {};
  const auto rate = [&](const std::function<void()>& work) {
    const double before = ThreadCpuSeconds();
    for (int i = 0; i < kRounds; ++i) work();
    return kGiga * kRounds * kMiB / (ThreadCpuSeconds() - before);
  };
  if (sodium_init() < 0) return;  // It picks the instructions of this machine.
  AeadRounds aes_encrypts(EVP_aes_256_gcm(), true), aes_decrypts(EVP_aes_256_gcm(), false),
      chacha_encrypts(EVP_chacha20_poly1305(), true);
  struct Work {
    const char* name;
    std::function<void()> once;
  };
  const Work works[] = {
      {"AES-256-GCM sealed", [&] { aes_encrypts.Run(bytes.data(), encrypted.data()); }},
      {"AES-256-GCM opened in place",
       [&] { aes_decrypts.Run(encrypted.data(), encrypted.data()); }},
      {"ChaCha20-Poly1305 sealed", [&] { chacha_encrypts.Run(bytes.data(), encrypted.data()); }},
      {"Poly1305 tag alone", [&] { crypto_onetimeauth(tag, bytes.data(), kMiB, key.data()); }},
      {"XSalsa20-Poly1305, as CURVE", [&] {
         crypto_secretbox_detached(encrypted.data(), tag, bytes.data(), kMiB, nonce, key.data());
       }}};
  const auto turn = [&](size_t i) -> std::function<double()> {
    return [&, i] { return rate(works[i].once); };
  };
  const auto samples =
      InterleavedSamples(setting.repeats, {turn(0), turn(1), turn(2), turn(3), turn(4)});
  for (size_t i = 0; i < std::size(works); ++i) {
    report.Add(kBench, "seal_alone_1MiB", works[i].name, "GB/s", samples[i]);
  }
}

// Measures buffers that one thread allocates and fills, and another frees.
void RunBuffers(const BenchSetting& setting, size_t bytes, BenchReport& report) {
  const std::string name = "buffer_" + std::to_string(bytes / kKiB) + "KiB";
  if (!setting.Wants(name)) return;
  PrintProgress(kBench, name);
  constexpr size_t kCount = 4000, kHeld = 16;
  const auto handed_over = [&] {
    BoundedQueue<Buffer> queue(kHeld);
    const auto thread = StartThread("reader", [&queue] {
      for (size_t i = 0; i < kCount; ++i) queue.Pop();
    });
    const double before = ThreadCpuSeconds();
    for (size_t i = 0; i < kCount; ++i) {
      std::span<std::byte> filled;
      Buffer buffer = Buffer::Allocate(bytes, &filled);
      std::memset(filled.data(), 1, bytes);
      queue.Push(std::move(buffer));
    }
    const double seconds = ThreadCpuSeconds() - before;
    thread->Join();
    return seconds * 1e6 / kCount;
  };
  std::vector<std::byte> warm(bytes);
  const auto only_filled = [&] {
    const double before = ThreadCpuSeconds();
    uint64_t sum = 0;
    for (size_t i = 0; i < kCount; ++i) {
      std::memset(warm.data(), static_cast<int>(i & 0xff), bytes);
      sum += static_cast<uint64_t>(warm[i % bytes]);
    }
    return sum == 1 ? 0 : (ThreadCpuSeconds() - before) * 1e6 / kCount;
  };
  const auto samples = InterleavedSamples(setting.repeats, {handed_over, only_filled});
  report.AddBeside(kBench, name, "made, filled, handed over", "us", samples[0], "only filled",
                   samples[1]);
}

}  // namespace

Status RunWireBench(const BenchSetting& setting, FileSystem&, BenchReport& report) {
  for (const Case& c : kCases) {
    if (setting.Wants(c.name)) HDPS_RETURN_IF_ERROR(RunCase(setting, c, report));
  }
  for (const char* kind : {"tcp", "ipc"}) {
    for (const bool busy : {false, true}) {
      HDPS_RETURN_IF_ERROR(RunRoundTrip(setting, kind, busy, report));
    }
  }
  RunChecksum(setting, report);
  RunEncryption(setting, report);
  for (const size_t bytes : {64 * kKiB, 256 * kKiB, kMiB, 4 * kMiB}) {
    RunBuffers(setting, bytes, report);
  }
  return Status();
}

}  // namespace hdps
