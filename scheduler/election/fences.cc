// Asks whether this process leads, just before each change of a file and each frame.
#include "scheduler/election/fences.h"

#include <string>
#include <utility>

#include "common/platform/forwarding_files.h"

namespace hdps {
namespace {

Status Fenced() {
  return {Code::kUnavailable, "this scheduler leads no longer, so it changes no files"};
}

class FencedFile : public WritableFile {
 public:
  FencedFile(std::unique_ptr<WritableFile> file, MayLead may_lead)
      : file_(std::move(file)), may_lead_(std::move(may_lead)) {}
  Status Append(std::span<const std::byte> bytes) override {
    return may_lead_() ? file_->Append(bytes) : Fenced();
  }
  Status Sync() override { return may_lead_() ? file_->Sync() : Fenced(); }
  Status Close() override { return file_->Close(); }

 private:
  const std::unique_ptr<WritableFile> file_;
  const MayLead may_lead_;
};

class FencedFiles : public ForwardingFiles {
 public:
  FencedFiles(FileSystem& files, MayLead may_lead)
      : ForwardingFiles(files), may_lead_(std::move(may_lead)) {}

  Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    if (!may_lead_()) return Fenced();
    return Around(files().Create(path));
  }
  Result<std::unique_ptr<WritableFile>> OpenAppend(const std::string& path) override {
    if (!may_lead_()) return Fenced();
    return Around(files().OpenAppend(path));
  }
  Status MakeDirectories(const std::string& path) override {
    return may_lead_() ? files().MakeDirectories(path) : Fenced();
  }
  Status MakeDirectoriesUnsynced(const std::string& path) override {
    return may_lead_() ? files().MakeDirectoriesUnsynced(path) : Fenced();
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return may_lead_() ? files().Rename(from, to) : Fenced();
  }
  Status RenameUnsynced(const std::string& from, const std::string& to) override {
    return may_lead_() ? files().RenameUnsynced(from, to) : Fenced();
  }
  Status RemoveAll(const std::string& path) override {
    return may_lead_() ? files().RemoveAll(path) : Fenced();
  }
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path,
                                         const std::string& holder) override {
    if (!may_lead_()) return Fenced();
    return files().Lock(path, holder);
  }

 private:
  Result<std::unique_ptr<WritableFile>> Around(Result<std::unique_ptr<WritableFile>> file) {
    if (!file.ok()) return file;
    return std::unique_ptr<WritableFile>(std::make_unique<FencedFile>(*std::move(file), may_lead_));
  }

  const MayLead may_lead_;
};

class FencedTransport : public Transport {
 public:
  FencedTransport(Transport& transport, MayLead may_lead)
      : transport_(transport), may_lead_(std::move(may_lead)) {}

  Result<std::string> Listen(const std::string& address) override {
    return transport_.Listen(address);
  }
  Status Connect(PeerId peer, const std::string& address) override {
    return transport_.Connect(peer, address);
  }
  void HangUp(PeerId peer) override { transport_.HangUp(peer); }
  void Send(PeerId to, Frame frame) override {
    if (may_lead_()) transport_.Send(to, std::move(frame));
  }
  bool Receive(int64_t timeout_ms, PeerId* from, Frame* frame) override {
    return transport_.Receive(timeout_ms, from, frame);
  }
  SectionAllocator* sections() override { return transport_.sections(); }
  void Wake() override { transport_.Wake(); }
  TransportCounters counters() const override { return transport_.counters(); }

 private:
  Transport& transport_;
  const MayLead may_lead_;
};

}  // namespace

std::unique_ptr<FileSystem> NewFencedFiles(FileSystem& files, MayLead may_lead) {
  return std::make_unique<FencedFiles>(files, std::move(may_lead));
}

std::unique_ptr<Transport> NewFencedTransport(Transport& transport, MayLead may_lead) {
  return std::make_unique<FencedTransport>(transport, std::move(may_lead));
}

}  // namespace hdps
