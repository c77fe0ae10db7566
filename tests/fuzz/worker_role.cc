// Fuzzes a worker as a state machine: servers and a scheduler answer it correctly, wrongly, late,
// or as each other.
#include <glog/logging.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/protocol/message_frames.h"
#include "tests/common/protocol/message_samples.h"
#include "tests/fuzz/conversation.h"
#include "tests/sim/attacker.h"
#include "worker/exchange/key_split.h"
#include "worker/exchange/pull_plan.h"
#include "worker/exchange/push_plan.h"
#include "worker/role/worker_node.h"

namespace hdps::fuzz {
namespace {

constexpr PeerId kSelf = {1'000'200}, kStranger = {600'000'000};
constexpr size_t kFramesMax = 200;

// Trains as commanded: pulls, pushes, and reports.
class Steps : public ComputeSide {
 public:
  void Connect(ComputeRequests* requests) { requests_ = requests; }

  void OnView(std::shared_ptr<const View> view, WorkerId rank) override {
    CHECK_LT(rank.value, view->workers.size());
    CHECK(view_ == nullptr || view_->view.value < view->view.value);
    view_ = std::move(view);
    pulling_.reset();
  }
  void OnCommand(const Command& command) override {
    CHECK(view_ != nullptr);
    if (command.command == CommandKind::kTrain && command.until > clock_ && !pulling_)
      return Pull();
    CommandDone done;
    done.id = command.id;
    done.clock = clock_;
    requests_->Answer(done);
  }
  void OnReplies(Ticket ticket, Status status, std::vector<Frame> replies) override {
    CHECK(!ended_);
    if (!pulling_ || ticket.value != *pulling_) return;
    pulling_.reset();
    std::vector<float> rows[2];
    for (uint32_t t = 0; t < 2; ++t) rows[t].resize(keys_.size() * sim::kDims[t]);
    for (size_t i = 0; i < replies.size() && status.ok(); ++i) {
      PullReply reply;
      status = DecodeMessage(replies[i], &reply);
      if (status.ok())
        status = plan_.Scatter(i, reply, std::vector<std::span<float>>(rows, rows + 2));
    }
    if (!status.ok()) return requests_->Report({});  // A real worker would go back or end.
    Push();
  }
  void OnKvValue(const KvValue&) override {}
  void OnEnd(Status) override {
    CHECK(!ended_);
    ended_ = true;
  }

 private:
  void Pull() {
    KeysOfTable tables[2];
    for (uint32_t t = 0; t < 2; ++t) tables[t] = {TableId{t}, ShardBy::kKey, sim::kDims[t], keys_};
    split_.Compute(view_->shards, static_cast<uint32_t>(view_->servers.size()), tables);
    pulling_ = next_ticket_++;
    requests_->Start({*pulling_}, plan_.Pull(split_, {clock_, PullMode::kTrain, clock_}), {});
  }
  void Push() {
    const std::vector<float> narrow(keys_.size(), 1), wide(3 * keys_.size(), 1);
    const std::span<const float> gradients[] = {narrow, wide};
    ++clock_;
    requests_->Start({next_ticket_++},
                     PushPlan(split_).Requests({{next_sequence_++}, clock_ - 1, 1}, gradients),
                     AdvanceRequests(split_.num_servers(), clock_));
  }

  ComputeRequests* requests_ = nullptr;
  std::shared_ptr<const View> view_;
  const std::vector<Key> keys_ = {1, 2, 3, 5, 8, 13};
  KeySplit split_;
  PullPlan plan_;
  std::optional<uint64_t> pulling_;
  uint64_t next_ticket_ = 1, next_sequence_ = 0;
  Clock clock_ = 0;
  bool ended_ = false;
};

// The other nodes, as the worker sees them.
//
// Invariant: asked_ has the worker's frames that were neither answered nor lost yet.
class Others {
 public:
  Others(Node* node, Input* input) : node_(*node), input_(*input) {
    view_.view = {1};
    view_.servers = {{{1'000'100}, 0, "ipc:///s0"}, {{1'001'101}, 1, "ipc:///s1"}};
    view_.workers = {{kSelf, 0, ""}, {{1'002'201}, 1, ""}};
    for (uint32_t shard = 0; shard < 8; ++shard) view_.shards.owner.push_back({shard % 2});
  }

  void Act() {
    const uint8_t what = input_.Take();
    const uint8_t count = what / 8;
    switch (what % 8) {
      case 0:
        return node_.OnTick(now_ += TimeMs{10} * count * count);
      case 1:
        return AnswerNext(count);
      case 2: {
        view_.view.value += count % 4;
        if (count / 4 % 2 == 1) std::swap(view_.servers[0], view_.servers[1]);
        return Give(kSchedulerPeer, EncodeMessage(view_), count >= 24);
      }
      case 3: {
        Command command;
        command.id = {++command_id_ - count / 16};
        command.command = static_cast<CommandKind>(count % 10);
        command.until = 5;
        return Give(kSchedulerPeer, EncodeMessage(command), count >= 24);
      }
      case 4:
        if (!asked_.empty()) asked_.pop_front();
        return;
      case 5: {
        Frame sample;
        size_t at = count;
        testing_samples::ForEachSample([&](const auto& message) {
          if (at-- == 0) sample = EncodeMessage(message);
        });
        return Give(Peer(), std::move(sample), input_.Take() % 2 == 1);
      }
      case 6:
        if (!asked_.empty()) asked_.push_back(asked_.front());
        return;
      default:
        if (count == 0) node_.RequestStop("asked to");
    }
  }
  void TakeOutput() {
    Output output = node_.TakeOutput();
    CHECK_LE(output.frames.size(), kFramesMax);
    for (Outgoing& out : output.frames) {
      const auto kind = static_cast<MessageKind>(out.frame.header.kind);
      if (kind != MessageKind::kHeartbeat) asked_.push_back(std::move(out));
      if (asked_.size() > kFramesMax) asked_.pop_front();
    }
  }

 private:
  PeerId Peer() {
    const PeerId peers[] = {kSchedulerPeer, view_.servers[0].peer, view_.servers[1].peer,
                            view_.workers[1].peer, kStranger};
    return peers[input_.Take() % std::size(peers)];
  }
  // Answers the first waiting frame correctly, or changed or from another node if `how` says so.
  void AnswerNext(uint8_t how) {
    if (asked_.empty()) return;
    const Outgoing asked = std::move(asked_.front());
    asked_.pop_front();
    std::optional<Frame> answer = AnswerTo(asked.frame);
    if (!answer) return;
    answer->header.request_id = asked.frame.header.request_id;
    answer->header.group = asked.frame.header.group;
    Give(how % 4 == 3 ? Peer() : asked.to, *std::move(answer), how >= 16);
  }
  std::optional<Frame> AnswerTo(const Frame& frame) {
    PullRequest pull;
    PushRequest push;
    AdvanceRequest advance;
    if (DecodeMessage(frame, &pull).ok()) {
      size_t floats = 0;
      for (const TableKeys& table : pull.tables)
        floats += size_t{table.num_keys} * table.row_floats;
      const std::vector<float> rows(floats, 0.5f);
      PullReply reply;
      reply.min_clock = pull.clock;
      reply.tables = pull.tables;
      reply.rows = Buffer::CopyOf<float>(rows);
      return EncodeMessage(reply);
    }
    if (DecodeMessage(frame, &push).ok())
      return EncodeMessage(PushAck{push.sequence, Code::kOk, ""});
    if (DecodeMessage(frame, &advance).ok()) return EncodeMessage(AdvanceAck{advance.clock});
    if (frame.header.kind == static_cast<uint16_t>(JoinRequest::kKind)) return EncodeMessage(view_);
    return std::nullopt;
  }
  void Give(PeerId from, Frame frame, bool change) {
    frame.header.view = view_.view.value;
    if (change) {
      sim::Harm(&frame, [this](uint64_t bound) { return input_.Take<uint16_t>() % bound; });
    }
    frame.header.sender = from.value;
    ChecksumFrame(frame);
    if (CheckFrame(frame).ok()) node_.OnFrame(from, std::move(frame));
  }

  Node& node_;
  Input& input_;
  View view_;
  TimeMs now_ = 0;
  uint64_t command_id_ = 0;
  std::deque<Outgoing> asked_;
};

Verdict Run(std::string_view bytes) {
  Input input(bytes);
  WorkerNodeOptions options;
  options.job = sim::JobOf(ClusterOf(Mode::kSync));
  options.identity.self = kSelf;
  options.identity.scheduler_address = sim::kSchedulerAddress;
  Steps steps;
  WorkerNode node(options, &steps);
  steps.Connect(&node);
  Others others(&node, &input);
  node.OnTick(0);
  others.TakeOutput();
  while (!input.empty() && !node.done()) {
    others.Act();
    others.TakeOutput();
  }
  return node.done() && node.exit_status() == 0 ? Verdict::kAccepted : Verdict::kRefused;
}

std::vector<std::string> Seeds() {
  const auto act = [](uint8_t what, uint8_t count) {
    return std::string(1, static_cast<char>(what + 8 * count));
  };
  const std::string train = act(3, static_cast<uint8_t>(CommandKind::kTrain));
  const std::string finish = act(3, static_cast<uint8_t>(CommandKind::kFinish));
  const std::string joined = act(0, 5) + act(1, 0);
  std::string step;
  for (int i = 0; i < 10; ++i) step += act(1, 0) + act(0, 3);
  return {joined + train + step + train + step + finish,
          joined + train + act(1, 20) + step + act(2, 1) + train + step + finish,
          joined + train + act(0, 31) + act(5, 18) + "\1\0" + act(4, 0) + act(6, 0) + step,
          act(7, 0) + joined + train + step, act(2, 30) + "\5\0\7\0\1\0" + joined + finish};
}

const AddTarget worker({"worker", Run, Seeds});

}  // namespace
}  // namespace hdps::fuzz
