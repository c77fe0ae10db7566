// Delivers frames between the nodes of one process through mailboxes that a mutex guards.
#include <glog/logging.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/base/thread_annotations.h"
#include "common/net/address.h"
#include "common/net/transport.h"

namespace hdps {
namespace {

class Mailbox;

struct Letter {
  PeerId from;
  std::weak_ptr<Mailbox> sender;  // The mailbox to which an answer goes.
  Frame frame;
};

// Frames in transit to one transport.
//
// Invariant: at most `frames_max` frames of each sender wait, and frames of one sender stay in
// order.
class Mailbox {
 public:
  bool Put(Letter letter, uint32_t frames_max) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    uint32_t& waiting = waiting_[letter.from];
    if (closed_ || waiting >= frames_max) return false;
    ++waiting;
    letters_.push_back(std::move(letter));
    changed_.notify_one();
    return true;
  }

  // Returns false on Wake() and if nothing arrived in time.
  bool Take(int64_t timeout_ms, Letter* letter) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    // Waits once instead of in a loop: a wait that ends early is a Receive() that found nothing.
    if (timeout_ms > 0 && letters_.empty() && !woken_) {
      changed_.wait_for(mutex_, std::chrono::milliseconds(timeout_ms));
    }
    if (letters_.empty()) {
      woken_ = false;
      return false;
    }
    *letter = std::move(letters_.front());
    letters_.pop_front();
    const auto waiting = waiting_.find(letter->from);
    if (--waiting->second == 0) waiting_.erase(waiting);
    return true;
  }

  void Wake() HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    woken_ = true;
    changed_.notify_one();
  }

  void Close() HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    closed_ = true;
    letters_.clear();
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Letter> letters_ HDPS_GUARDED_BY(mutex_);
  std::unordered_map<PeerId, uint32_t> waiting_ HDPS_GUARDED_BY(mutex_);
  bool woken_ HDPS_GUARDED_BY(mutex_) = false;
  bool closed_ HDPS_GUARDED_BY(mutex_) = false;
};

}  // namespace

// Maps each name to the mailbox that listens under it. Any thread may call anything.
class InprocHub {
 public:
  Status Listen(const std::string& name, std::shared_ptr<Mailbox> mailbox) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::weak_ptr<Mailbox>& listener = listeners_[name];
    if (listener.lock() != nullptr) {
      return Status(Code::kInvalidArgument, "address " + name + " is in use; choose another name");
    }
    listener = std::move(mailbox);
    return Status();
  }

  std::shared_ptr<Mailbox> Find(const std::string& name) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto listener = listeners_.find(name);
    return listener == listeners_.end() ? nullptr : listener->second.lock();
  }

 private:
  Mutex mutex_;
  std::map<std::string, std::weak_ptr<Mailbox>> listeners_ HDPS_GUARDED_BY(mutex_);
};

namespace {

class InprocTransport : public Transport {
 public:
  InprocTransport(std::shared_ptr<InprocHub> hub, const TransportOptions& options)
      : hub_(std::move(hub)), options_(options), mailbox_(std::make_shared<Mailbox>()) {}
  ~InprocTransport() override { mailbox_->Close(); }

  Result<std::string> Listen(const std::string& text) override {
    HDPS_ASSIGN_OR_RETURN(const Address address, ParseAddress(text));
    HDPS_RETURN_IF_ERROR(CheckInproc(address));
    HDPS_RETURN_IF_ERROR(hub_->Listen(address.ToString(), mailbox_));
    return address.ToString();
  }

  Status Connect(PeerId peer, const std::string& text) override {
    HDPS_ASSIGN_OR_RETURN(const Address address, ParseAddress(text));
    HDPS_RETURN_IF_ERROR(CheckInproc(address));
    dialed_[peer] = address.ToString();
    return Status();
  }

  void HangUp(PeerId peer) override {
    dialed_.erase(peer);
    callers_.erase(peer);
  }

  void Send(PeerId to, Frame frame) override {
    frame.header.sender = options_.self.peer.value;
    frame.header.shared_sections = static_cast<uint8_t>((1u << frame.sections.size()) - 1);
    ChecksumFrame(frame);
    const uint64_t bytes = sizeof(FrameHeader) + frame.header.body_bytes;
    const std::shared_ptr<Mailbox> mailbox = MailboxOf(to);
    if (mailbox == nullptr || !mailbox->Put({options_.self.peer, mailbox_, std::move(frame)},
                                            options_.queue_frames_max)) {
      ++counters_.frames_dropped;
      return;
    }
    ++counters_.frames_sent;
    counters_.bytes_sent += bytes;
  }

  bool Receive(int64_t timeout_ms, PeerId* from, Frame* frame) override {
    Letter letter;
    if (!mailbox_->Take(timeout_ms, &letter)) return false;
    *from = letter.from;
    *frame = std::move(letter.frame);
    Remember(letter.from, std::move(letter.sender));
    ++counters_.frames_received;
    counters_.bytes_received += sizeof(FrameHeader) + frame->header.body_bytes;
    return true;
  }

  SectionAllocator* sections() override { return sections_.get(); }
  void Wake() override { mailbox_->Wake(); }
  TransportCounters counters() const override { return counters_; }

 private:
  static Status CheckInproc(const Address& address) {
    if (address.scheme == Address::Scheme::kInproc) return Status();
    return Status(Code::kInvalidArgument, "address " + address.ToString() +
                                              " is not within this process; write inproc://NAME");
  }

  std::shared_ptr<Mailbox> MailboxOf(PeerId to) {
    // A name is looked up for each frame, because its listener may appear after the dial or be
    // replaced.
    if (const auto dialed = dialed_.find(to); dialed != dialed_.end()) {
      return hub_->Find(dialed->second);
    }
    const auto caller = callers_.find(to);
    return caller == callers_.end() ? nullptr : caller->second.lock();
  }

  // Removes peers that are gone when a new one comes, so the map stays as large as the cluster.
  void Remember(PeerId peer, std::weak_ptr<Mailbox> mailbox) {
    if (callers_.count(peer) > 0) return;
    std::erase_if(callers_, [](const auto& caller) { return caller.second.expired(); });
    callers_[peer] = std::move(mailbox);
  }

  const std::shared_ptr<InprocHub> hub_;
  const TransportOptions options_;
  const std::shared_ptr<Mailbox> mailbox_;
  const std::unique_ptr<SectionAllocator> sections_ = NewKeptSections();
  std::unordered_map<PeerId, std::string> dialed_;
  std::unordered_map<PeerId, std::weak_ptr<Mailbox>> callers_;
  TransportCounters counters_;
};

}  // namespace

std::shared_ptr<InprocHub> NewInprocHub() { return std::make_shared<InprocHub>(); }

std::unique_ptr<Transport> NewInprocTransport(std::shared_ptr<InprocHub> hub,
                                              const TransportOptions& options) {
  return std::make_unique<InprocTransport>(std::move(hub), options);
}

}  // namespace hdps
