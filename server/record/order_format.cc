// Encodes and decodes the items of a record.
#include "server/record/order_format.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "common/base/hash.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "server/pull_admission.h"

namespace hdps {
namespace {

constexpr std::string_view kMagic = "hdpsord\n";
constexpr size_t kHeaderBytes = 32;       // Magic, version, mode, digest of the job, checksum.
constexpr size_t kBlockHeaderBytes = 8;   // Length and checksum of what follows.
constexpr uint32_t kBlockMax = 16 << 20;  // A longer block is none.

// The first byte of an item: three bits of its kind, two of its step, three of its worker.
constexpr uint32_t kMark = 7;        // In place of an OrderKind: a mark, whose number follows.
constexpr uint32_t kWorkerMore = 7;  // The worker follows as a number.
enum StepCode : uint32_t { kSame = 0, kNext = 1, kGiven = 2, kGivenWithPart = 3 };

uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

std::string Fixed(uint64_t number, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text.push_back(static_cast<char>(number >> (8 * i)));
  return text;
}

uint64_t ReadFixed(std::span<const std::byte> bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    number |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
  return number;
}

uint32_t Checksum(std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(HashBytes(bytes));
}

// Reads the items of one block. Every read beyond the end sets `bad`.
class BlockReader {
 public:
  BlockReader(std::span<const std::byte> bytes, std::map<WorkerId, Clock>* steps)
      : bytes_(bytes), steps_(*steps) {}

  bool done() const { return bad_ || bytes_.empty(); }
  bool bad() const { return bad_; }

  OrderItem Next() {
    const uint32_t first = Byte();
    if ((first & 7) != kMark) return Entry(first);
    switch (first >> 3) {
      case 1:
        return GroupMark{{Small()}};
      case 2:
        return View();
      case 3:
        return LoadMark{UnZigZag(Number())};
      case 4:
        return Digest();
      default:
        bad_ = true;
        return GroupMark();
    }
  }

 private:
  uint32_t Byte() {
    if (bytes_.empty()) {
      bad_ = true;
      return 0;
    }
    const auto byte = std::to_integer<uint32_t>(bytes_.front());
    bytes_ = bytes_.subspan(1);
    return byte;
  }
  uint64_t Number() {
    uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint32_t byte = Byte();
      number |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return number;
    }
    bad_ = true;
    return 0;
  }
  uint32_t Small() {
    const uint64_t number = Number();
    bad_ = bad_ || number > std::numeric_limits<uint32_t>::max();
    return static_cast<uint32_t>(number);
  }
  uint64_t Whole() {
    if (bytes_.size() < 8) {
      bad_ = true;
      return 0;
    }
    const uint64_t number = ReadFixed(bytes_.first(8));
    bytes_ = bytes_.subspan(8);
    return number;
  }
  std::vector<ServerId> Groups() {
    std::vector<ServerId> groups;
    for (uint64_t left = Number(); left > 0 && !bad_; --left) groups.push_back({Small()});
    return groups;
  }

  OrderItem Entry(uint32_t first) {
    OrderEntry entry;
    entry.kind = static_cast<OrderKind>(first & 7);
    bad_ = bad_ || entry.kind > OrderKind::kAdvance;
    const uint32_t code = (first >> 3) & 3;
    const uint32_t worker = first >> 5;
    entry.worker = {worker == kWorkerMore ? Small() : worker};
    Clock& step = steps_[entry.worker];
    if (code == kNext) {
      ++step;
    } else if (code >= kGiven) {
      step = static_cast<Clock>(static_cast<uint64_t>(step) +
                                static_cast<uint64_t>(UnZigZag(Number())));
    }
    // A sum beyond all steps is a fault of the bytes; it must not run over later.
    constexpr Clock kStepMax = Clock{1} << 60;
    if (step < -1 || step > kStepMax) {
      bad_ = true;
      step = 0;
    }
    if (code == kGivenWithPart) entry.part = Small();
    entry.step = step;
    return entry;
  }
  OrderItem View() {
    ViewMark view;
    view.view = {Number()};
    view.workers = Small();
    view.owner = Groups();
    view.led = Groups();
    return view;
  }
  OrderItem Digest() {
    DigestMark digest;
    digest.sum = {Whole(), Whole()};
    digest.clock = UnZigZag(Number());
    digest.whole = Byte() != 0;
    return digest;
  }

  std::span<const std::byte> bytes_;
  std::map<WorkerId, Clock>& steps_;
  bool bad_ = false;
};

}  // namespace

const char* OrderKindName(OrderKind kind) {
  switch (kind) {
    case OrderKind::kTrainPull:
      return "pull";
    case OrderKind::kPrefetch:
      return "pull ahead";
    case OrderKind::kRefresh:
      return "repair";
    case OrderKind::kPush:
      return "push";
    case OrderKind::kAdvance:
      return "advance";
  }
  return "request";
}

std::optional<OrderEntry> EntryOf(WorkerId worker, const PullRequest& request) {
  if (!IsTraining(request.mode)) return std::nullopt;
  const OrderKind kind = request.mode == PullMode::kTrain      ? OrderKind::kTrainPull
                         : request.mode == PullMode::kPrefetch ? OrderKind::kPrefetch
                                                               : OrderKind::kRefresh;
  return OrderEntry{kind, worker, request.clock, request.part};
}

std::optional<OrderEntry> EntryOf(WorkerId worker, const Frame& request) {
  switch (static_cast<MessageKind>(request.header.kind)) {
    case MessageKind::kPullRequest: {
      PullRequest pull;
      if (!DecodeMessage(request, &pull).ok()) return std::nullopt;
      return EntryOf(worker, pull);
    }
    case MessageKind::kPushRequest: {
      PushRequest push;
      if (!DecodeMessage(request, &push).ok()) return std::nullopt;
      return OrderEntry{OrderKind::kPush, worker, push.clock, push.part};
    }
    case MessageKind::kAdvanceRequest: {
      AdvanceRequest advance;
      if (!DecodeMessage(request, &advance).ok()) return std::nullopt;
      return OrderEntry{OrderKind::kAdvance, worker, advance.clock - 1, 0};
    }
    default:
      return std::nullopt;
  }
}

// ---- Encoding.

std::string OrderEncoder::Header(const OrderHeader& header) {
  std::string text(kMagic);
  text += Fixed(OrderHeader::kVersion, 4);
  text += Fixed(static_cast<uint64_t>(header.mode), 4);
  text += Fixed(header.job_digest, 8);
  return text + Fixed(HashString(text), 8);
}

void OrderEncoder::AddNumber(uint64_t number) {
  for (; number >= 128; number >>= 7) bytes_.push_back(static_cast<char>(number | 128));
  bytes_.push_back(static_cast<char>(number));
}

void OrderEncoder::AddFixed(uint64_t number) { bytes_ += Fixed(number, 8); }

void OrderEncoder::AddEntry(const OrderEntry& entry) {
  Clock& last = steps_[entry.worker];
  const int64_t ahead = entry.step - std::exchange(last, entry.step);
  const uint32_t code = entry.part > 0             ? kGivenWithPart
                        : ahead == 0 || ahead == 1 ? static_cast<uint32_t>(ahead)
                                                   : kGiven;
  const uint32_t worker = std::min(entry.worker.value, kWorkerMore);
  bytes_.push_back(static_cast<char>(static_cast<uint32_t>(entry.kind) | code << 3 | worker << 5));
  if (worker == kWorkerMore) AddNumber(entry.worker.value);
  if (code >= kGiven) AddNumber(ZigZag(ahead));
  if (code == kGivenWithPart) AddNumber(entry.part);
}

void OrderEncoder::Add(const OrderItem& item) {
  if (const auto* entry = std::get_if<OrderEntry>(&item)) return AddEntry(*entry);
  bytes_.push_back(static_cast<char>(kMark | item.index() << 3));
  const auto add_groups = [this](const std::vector<ServerId>& groups) {
    AddNumber(groups.size());
    for (const ServerId group : groups) AddNumber(group.value);
  };
  if (const auto* group = std::get_if<GroupMark>(&item)) {
    AddNumber(group->group.value);
  } else if (const auto* view = std::get_if<ViewMark>(&item)) {
    AddNumber(view->view.value);
    AddNumber(view->workers);
    add_groups(view->owner);
    add_groups(view->led);
  } else if (const auto* load = std::get_if<LoadMark>(&item)) {
    AddNumber(ZigZag(load->clock));
  } else {
    const auto& digest = std::get<DigestMark>(item);
    for (const uint64_t sum : digest.sum) AddFixed(sum);
    AddNumber(ZigZag(digest.clock));
    bytes_.push_back(digest.whole ? 1 : 0);
  }
}

std::string OrderEncoder::TakeBlock() {
  const std::string items = std::exchange(bytes_, "");
  if (items.empty()) return "";
  const uint32_t checksum = Checksum(std::as_bytes(std::span(items)));
  return Fixed(items.size(), 4) + Fixed(checksum, 4) + items;
}

// ---- Decoding.

Result<OrderFile> DecodeOrderFile(std::span<const std::byte> bytes, const std::string& name) {
  const auto refuse = [&name](const std::string& why) {
    return Status(Code::kInvalidArgument, name + ": " + why);
  };
  const auto magic = std::as_bytes(std::span(kMagic));
  const size_t shown = std::min(magic.size(), bytes.size());
  if (!std::ranges::equal(bytes.first(shown), magic.first(shown))) {
    return refuse("this is no record of an order of requests; give the folder of --record");
  }
  OrderFile file;
  if (bytes.size() < kHeaderBytes) {  // The server was killed as it began.
    file.cut = true;
    return file;
  }
  const uint64_t version = ReadFixed(bytes.subspan(8, 4));
  if (version != OrderHeader::kVersion) {
    return refuse("the record is of version " + std::to_string(version) + ", this program reads " +
                  std::to_string(OrderHeader::kVersion));
  }
  const uint64_t mode = ReadFixed(bytes.subspan(12, 4));
  if (ReadFixed(bytes.subspan(24, 8)) != HashBytes(bytes.first(24)) ||
      mode > static_cast<uint64_t>(Mode::kSsp)) {
    return refuse("the record is damaged in its first 32 bytes");
  }
  file.header = {ReadFixed(bytes.subspan(16, 8)), static_cast<Mode>(mode)};
  std::map<WorkerId, Clock> steps;
  for (size_t at = kHeaderBytes; at < bytes.size();) {
    const std::span<const std::byte> rest = bytes.subspan(at);
    const uint64_t length = rest.size() < kBlockHeaderBytes ? 0 : ReadFixed(rest.first(4));
    file.cut = rest.size() < kBlockHeaderBytes + length;
    const std::string damaged = "the record is damaged behind byte " + std::to_string(at);
    if (length > kBlockMax) return refuse(damaged);
    if (file.cut || length == 0) break;
    const auto items = rest.subspan(kBlockHeaderBytes, length);
    if (Checksum(items) != ReadFixed(rest.subspan(4, 4))) return refuse(damaged);
    BlockReader reader(items, &steps);
    while (!reader.done()) {
      OrderItem item = reader.Next();
      if (reader.bad()) return refuse(damaged);
      file.items.push_back(std::move(item));
    }
    at += kBlockHeaderBytes + length;
  }
  return file;
}

}  // namespace hdps
