// Collects entries in blocks, and writes a block when it is full or a mark makes it due.
#include "server/record/order_recorder.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <utility>

#include "common/base/hex_digits.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/protocol/row_messages.h"
#include "common/protocol/view.h"

namespace hdps {
namespace {

constexpr size_t kBlockBytes = 4096;
// Pulls of one process that a repeat is told by; more than it may have in flight.
constexpr size_t kAnsweredMax = 64;
constexpr size_t kProcessesMax = 1024;  // Processes of workers whose pulls are kept.

}  // namespace

Result<std::unique_ptr<OrderRecorder>> OrderRecorder::Open(FileSystem& files,
                                                           const std::string& folder, PeerId self,
                                                           const Job& job) {
  const std::string path = JoinPath(folder, "server_" + HexDigits(self.value) + ".order");
  const auto refuse = [&folder](const Status& why) {
    return Status(Code::kInvalidArgument,
                  "--record=" + folder + " cannot be written: " + why.message());
  };
  if (const Status made = files.MakeDirectories(folder); !made.ok()) return refuse(made);
  Result<std::unique_ptr<WritableFile>> file = files.Create(path);
  if (!file.ok()) return refuse(file.status());
  std::unique_ptr<OrderRecorder> recorder(new OrderRecorder(*std::move(file), path, job));
  recorder->Write(OrderEncoder::Header({JobDigest(job), job.train.mode}));
  if (recorder->file_ == nullptr) return refuse({Code::kIoError, "no byte fits"});
  LOG(INFO) << "recording into " << path
            << (recorder->sync_ ? ": in sync mode the order of requests decides nothing, so only "
                                  "members, saves and digests are written"
                                : "");
  return recorder;
}

OrderRecorder::OrderRecorder(std::unique_ptr<WritableFile> file, std::string path, const Job& job)
    : file_(std::move(file)), path_(std::move(path)), sync_(job.train.mode == Mode::kSync) {}

OrderRecorder::~OrderRecorder() {
  Flush();
  if (file_ != nullptr && !file_->Close().ok()) LOG(WARNING) << "cannot close " << path_;
}

void OrderRecorder::Pulled(ServerId group, WorkerId worker, PeerId peer, uint64_t request_id,
                           const PullRequest& pull) {
  const std::optional<OrderEntry> entry = EntryOf(worker, pull);
  if (sync_ || !entry || IsRepeat(peer, request_id)) return;
  Add(group, *entry);
}

void OrderRecorder::Pushed(ServerId group, WorkerId worker, Clock step, uint32_t part) {
  if (!sync_) Add(group, {OrderKind::kPush, worker, step, part});
}

void OrderRecorder::Advanced(ServerId group, WorkerId worker, Clock clock) {
  if (sync_) return;
  Clock& last = advanced_[{group, worker}];
  if (clock <= last) return;
  last = clock;
  Add(group, {OrderKind::kAdvance, worker, clock - 1, 0});
}

bool OrderRecorder::IsRepeat(PeerId peer, uint64_t request_id) {
  if (answered_.size() > kProcessesMax) answered_.clear();
  std::deque<uint64_t>& pulls = answered_[peer];
  if (std::ranges::find(pulls, request_id) != pulls.end()) return true;
  pulls.push_back(request_id);
  if (pulls.size() > kAnsweredMax) pulls.pop_front();
  return false;
}

void OrderRecorder::Entered(const View& view, PeerId self) {
  ViewMark mark;
  mark.view = view.view;
  mark.workers = static_cast<uint32_t>(view.workers.size());
  mark.owner = view.shards.owner;
  for (uint32_t g = 0; g < view.servers.size(); ++g) {
    if (view.servers[g].peer == self) mark.led.push_back({g});
  }
  AddMark(mark);
}

void OrderRecorder::Add(ServerId group, const OrderEntry& entry) {
  if (std::exchange(group_, group) != group) encoder_.Add(GroupMark{group});
  encoder_.Add(entry);
  if (encoder_.size() >= kBlockBytes) Flush();
}

void OrderRecorder::AddMark(const OrderItem& mark) {
  if (std::holds_alternative<LoadMark>(mark)) advanced_.clear();
  encoder_.Add(mark);
  Flush();
}

void OrderRecorder::Flush() { Write(encoder_.TakeBlock()); }

void OrderRecorder::Write(const std::string& bytes) {
  if (file_ == nullptr || bytes.empty()) return;
  const Status written = file_->Append(std::as_bytes(std::span(bytes)));
  if (written.ok()) return;
  LOG(WARNING) << "the record ends here, and training goes on: " << written.message();
  file_ = nullptr;
}

}  // namespace hdps
