// Records conversations, and replays them with changes.
#include "tests/fuzz/conversation.h"

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "common/protocol/message_frames.h"
#include "tests/common/protocol/message_samples.h"
#include "tests/sim/attacker.h"

namespace hdps::fuzz {
namespace {

constexpr PeerId kStranger = {600'000'000};
constexpr TimeMs kTickMs = 100;  // Least time between two recorded ticks: one tick in ten.
// ^Bound on frames that answer one frame or tick: views to every member, held requests, copies.
constexpr size_t kFramesMax = 200;
constexpr size_t kBytesMax = size_t{1} << 20;

enum class Move : uint8_t {
  kNext,
  kLeaveOut,
  kAgain,
  kChanged,
  kFromAnother,
  kSample,
  kTime,
  kStop
};
constexpr uint8_t kMoves = 8;

const std::vector<Frame>& Samples() {
  static const auto* const all = [] {
    auto* frames = new std::vector<Frame>;
    testing_samples::ForEachSample(
        [&](const auto& message) { frames->push_back(EncodeMessage(message)); });
    return frames;
  }();
  return *all;
}

// Replays a conversation to a node.
//
// Invariant: at_ is the next part of the conversation; time never goes back.
class Speaker {
 public:
  Speaker(const Conversation& conversation, Node* node, Input* input)
      : conversation_(conversation), node_(*node), input_(*input) {}

  void Speak() {
    while (!input_.empty() && !node_.done()) {
      const uint8_t what = input_.Take();
      Do(static_cast<Move>(what % kMoves), what / kMoves);
      const Output output = node_.TakeOutput();
      CHECK_LE(output.frames.size(), kFramesMax);
      size_t bytes = 0;
      for (const Outgoing& out : output.frames) bytes += out.frame.header.body_bytes;
      CHECK_LE(bytes, kBytesMax);
    }
  }

 private:
  void Do(Move move, size_t count) {
    const sim::Draw draw = [this](uint64_t bound) { return input_.Take<uint16_t>() % bound; };
    switch (move) {
      case Move::kNext:
        for (size_t i = 0; i <= count && at_ < conversation_.given.size(); ++i) {
          Give(conversation_.given[at_++]);
        }
        return;
      case Move::kLeaveOut:
        at_ = std::min(at_ + 1 + count, conversation_.given.size());
        return;
      case Move::kAgain:
        return GiveFrame(Chosen(), /*change=*/nullptr);
      case Move::kChanged:
        return GiveFrame(Chosen(), &draw);
      case Move::kFromAnother: {
        Given chosen = Chosen();
        chosen.from = conversation_.peers[count % conversation_.peers.size()];
        return GiveFrame(chosen, draw(2) == 0 ? &draw : nullptr);
      }
      case Move::kSample: {
        const PeerId from = conversation_.peers[count % conversation_.peers.size()];
        Given sample{now_, from, Samples()[draw(Samples().size())]};
        sample.frame->header.view = view_;
        return GiveFrame(sample, draw(2) == 0 ? &draw : nullptr);
      }
      case Move::kTime:
        now_ += static_cast<TimeMs>(count * count * 20);
        return node_.OnTick(now_);
      case Move::kStop:
        if (count == 0) node_.RequestStop("asked to");
        return;
    }
  }
  // Chooses one of the parts before at_, or of the next few.
  Given Chosen() const {
    const size_t among = std::min(at_ + 8, conversation_.given.size());
    return conversation_.given[input_.Take<uint16_t>() % among];
  }
  void Give(const Given& given) {
    now_ = std::max(now_, given.now);
    if (!given.frame) return node_.OnTick(now_);
    GiveFrame(given, nullptr);
  }
  void GiveFrame(Given given, const sim::Draw* change) {
    if (!given.frame) return;
    if (change != nullptr) sim::Harm(&*given.frame, *change);
    given.frame->header.sender = given.from.value;
    ChecksumFrame(*given.frame);
    if (!CheckFrame(*given.frame).ok()) return;
    view_ = given.frame->header.view;
    node_.OnFrame(given.from, *std::move(given.frame));
  }

  const Conversation& conversation_;
  Node& node_;
  Input& input_;
  size_t at_ = 0;
  TimeMs now_ = 0;
  uint64_t view_ = 0;
};

}  // namespace

sim::ClusterOptions ClusterOf(Mode mode) {
  sim::ClusterOptions options;
  options.seed = 3;
  options.mode = mode;
  options.staleness_bound = mode == Mode::kSsp ? 1 : 0;
  options.num_servers = options.num_workers = 2;
  options.steps_per_epoch = 3;
  options.epochs = 1;
  options.checkpoint_every = 2;
  options.delta_every = 1;
  options.replicas = 1;
  options.lookahead = 1;
  options.weather = {.loss_percent = 0, .repeat_percent = 0, .delay_ms_max = 5, .slow_percent = 0};
  return options;
}

Conversation Record(Role role, Mode mode) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  sim::Cluster cluster(ClusterOf(mode), files.get());
  Conversation conversation;
  conversation.self = role == Role::kScheduler ? kSchedulerPeer : cluster.PeerOf(role, 0);
  TimeMs ticked = -kTickMs;
  cluster.network().OnGiven([&](PeerId to, PeerId from, const Frame* frame) {
    const TimeMs now = cluster.network().now();
    if (to != conversation.self || (frame == nullptr && now < ticked + kTickMs)) return;
    if (frame == nullptr) {
      ticked = now;
      conversation.given.push_back({now, from, std::nullopt});
      return;
    }
    conversation.given.push_back({now, from, *frame});
    std::vector<PeerId>& peers = conversation.peers;
    if (std::ranges::count(peers, from) == 0) peers.push_back(from);
  });
  const sim::Outcome outcome = cluster.Run();
  CHECK(outcome.good()) << outcome.Describe();
  conversation.peers.push_back(kStranger);
  return conversation;
}

Verdict Converse(const Conversation& conversation, Node* node, Input* input) {
  Speaker(conversation, node, input).Speak();
  return node->done() && node->exit_status() == 0 ? Verdict::kAccepted : Verdict::kRefused;
}

std::vector<std::string> ConversationSeeds() {
  std::vector<std::string> seeds;
  const auto move = [](Move what, size_t count) {
    return static_cast<char>(count * kMoves + static_cast<size_t>(what));
  };
  for (char mode = 0; mode < 3; ++mode) {
    const std::string next(40, move(Move::kNext, 20));
    seeds.push_back(mode + next);
    for (const Move what : {Move::kLeaveOut, Move::kAgain, Move::kChanged, Move::kFromAnother,
                            Move::kSample, Move::kTime, Move::kStop}) {
      std::string seed(1, mode);
      for (uint8_t at = 0; at < 12; ++at) {
        seed += std::string(1 + at % 3, move(Move::kNext, 5)) + move(what, at % 4);
        const std::string about = {static_cast<char>(at * 7), 0, static_cast<char>(at), 0};
        if (what != Move::kTime && what != Move::kLeaveOut && what != Move::kStop) seed += about;
      }
      seeds.push_back(seed + next);
    }
  }
  return seeds;
}

}  // namespace hdps::fuzz
