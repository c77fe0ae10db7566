// Tests that the disk tier keeps blocks in order and separated by space, and reports failures.
#include "embedding/disk/disk_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "common/platform/fault_file_system.h"
#include "common/platform/random.h"
#include "tests/embedding/memory_disk_store.h"

namespace hdps {
namespace {

using testing::HasSubstr;

struct StoreCase {
  const char* name;
  bool rocks;
};

class DiskStoreTest : public testing::TestWithParam<StoreCase> {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/disk_store_" + std::to_string(NewPeerId().value);
    store_ = Open();
  }
  std::unique_ptr<DiskStore> Open() {
    if (!GetParam().rocks) return NewMemoryDiskStore();
    Result<std::unique_ptr<DiskStore>> store = NewRocksDiskStore({folder_, 4 << 20});
    EXPECT_TRUE(store.ok()) << store.status().message();
    return *std::move(store);
  }

  std::string folder_;
  std::unique_ptr<DiskStore> store_;
};

constexpr DiskSpace kSpace{{3}, {1}};

std::vector<std::byte> BlockOf(uint64_t seed, size_t bytes) {
  std::vector<std::byte> block(bytes);
  for (size_t i = 0; i < bytes; ++i) block[i] = static_cast<std::byte>(RandomAt(seed, i));
  return block;
}

// The expected content of a space, and the calls that produce it.
struct Model {
  DiskStore* store;
  DiskSpace space;
  std::map<uint64_t, std::vector<std::byte>> blocks = {};

  void Put(const std::vector<uint64_t>& numbers, size_t bytes) {
    std::vector<DiskBlock> put;
    for (const uint64_t number : numbers) {
      blocks[number] = BlockOf(number, bytes + number % 7);
      put.push_back({number, blocks[number]});
    }
    ASSERT_TRUE(store->Put(space, put).ok());
  }
  void Erase(const std::vector<uint64_t>& numbers) {
    for (const uint64_t number : numbers) blocks.erase(number);
    ASSERT_TRUE(store->Erase(space, numbers).ok());
  }
  void ExpectAll() {
    std::vector<uint64_t> numbers;
    for (const auto& [number, bytes] : blocks) numbers.push_back(number);
    size_t seen = 0;
    const Status read =
        store->Get(space, numbers, [&](size_t k, std::span<const std::byte> bytes) -> Status {
          EXPECT_EQ(k, seen++);
          EXPECT_TRUE(std::ranges::equal(bytes, blocks[numbers[k]])) << numbers[k];
          return {};
        });
    ASSERT_TRUE(read.ok()) << read.message();
    EXPECT_EQ(seen, numbers.size());
  }
  void ExpectNone(uint64_t number) {
    const Status read = store->Get(space, {&number, 1}, [](size_t, std::span<const std::byte>) {
      ADD_FAILURE();
      return Status();
    });
    EXPECT_EQ(read.code(), Code::kIoError);
  }
};

TEST_P(DiskStoreTest, KeepsWhatManyCallsLeave) {
  Model model{store_.get(), kSpace};
  Random random(1);
  uint64_t next = 0;
  for (int round = 0; round < 60; ++round) {
    std::vector<uint64_t> put, erased;
    for (uint64_t n = random.Below(200); n > 0; --n) put.push_back(next++);
    model.Put(put, random.Below(5000));
    for (const auto& [number, bytes] : model.blocks) {
      if (random.Below(4) == 0) erased.push_back(number);
    }
    model.Erase(erased);
    if (round % 10 == 9) model.ExpectAll();
    if (!erased.empty()) model.ExpectNone(erased.back());
  }
}

TEST_P(DiskStoreTest, SpacesDoNotMeet) {
  const DiskSpace spaces[] = {{{0}, {0}}, {{0}, {1}}, {{1}, {0}}, {{65535}, {65535}}};
  std::vector<Model> models;
  for (const DiskSpace& space : spaces) models.push_back({store_.get(), space});
  const std::vector<uint64_t> numbers = {0, 1, 255, 256, uint64_t{1} << 63, ~uint64_t{0}};
  for (size_t m = 0; m < models.size(); ++m) models[m].Put(numbers, m + 1);
  models[2].Erase({0, 255});
  ASSERT_TRUE(store_->EraseAll(spaces[1]).ok());
  models[1].blocks.clear();
  for (Model& model : models) model.ExpectAll();
  models[1].ExpectNone(256);
  models[2].ExpectNone(255);
}

TEST_P(DiskStoreTest, GetEndsWhenTold) {
  Model model{store_.get(), kSpace};
  const std::vector<uint64_t> numbers = {1, 2, 3, 4};
  model.Put(numbers, 9);
  size_t seen = 0;
  const Status read = store_->Get(kSpace, numbers, [&](size_t, std::span<const std::byte>) {
    return ++seen < 2 ? Status() : Status(Code::kCancelled, "enough");
  });
  EXPECT_EQ(read.code(), Code::kCancelled);
  EXPECT_EQ(seen, 2u);
}

INSTANTIATE_TEST_SUITE_P(Stores, DiskStoreTest,
                         testing::Values(StoreCase{"rocks", true}, StoreCase{"memory", false}),
                         [](const auto& store) { return store.param.name; });

std::string NewFolder() {
  return testing::TempDir() + "/spill_" + std::to_string(NewPeerId().value);
}

TEST(RocksDiskStore, BeginsEmptyAndLeavesNothing) {
  const std::string folder = NewFolder();
  {
    Result<std::unique_ptr<DiskStore>> store = NewRocksDiskStore({folder, 4 << 20});
    ASSERT_TRUE(store.ok()) << store.status().message();
    EXPECT_TRUE(std::filesystem::exists(folder));
    std::filesystem::copy(folder, folder + "_crashed", std::filesystem::copy_options::recursive);
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
  // A folder left by a process that ended without closing.
  std::filesystem::rename(folder + "_crashed", folder);
  Result<std::unique_ptr<DiskStore>> store = NewRocksDiskStore({folder, 4 << 20});
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_EQ((*store)->disk_bytes(), 0u);
}

TEST(RocksDiskStore, RefusesAFolderInUse) {
  const std::string folder = NewFolder();
  const Result<std::unique_ptr<DiskStore>> first = NewRocksDiskStore({folder, 4 << 20});
  ASSERT_TRUE(first.ok());
  const Result<std::unique_ptr<DiskStore>> second = NewRocksDiskStore({folder, 4 << 20});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(second.status().message(), HasSubstr("cluster.spill_path"));
  EXPECT_THAT(second.status().message(), HasSubstr(folder));
  EXPECT_TRUE(std::filesystem::exists(folder));
}

TEST(RocksDiskStore, RefusesAFolderThatCannotBe) {
  const Result<std::unique_ptr<DiskStore>> store = NewRocksDiskStore({"/proc/spill", 4 << 20});
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(store.status().message(), HasSubstr("/proc/spill"));
}

// The files vanish, as on a failing disk: an error with the folder and the remedy.
TEST(RocksDiskStore, SaysWhenTheDiskFails) {
  const std::string folder = NewFolder();
  Result<std::unique_ptr<DiskStore>> store = NewRocksDiskStore({folder, 4 << 20});
  ASSERT_TRUE(store.ok());
  std::filesystem::remove_all(folder);
  Status status;
  const std::vector<std::byte> bytes(4096);
  for (uint64_t number = 0; number < 100000 && status.ok(); ++number) {
    const DiskBlock block{number, bytes};
    status = (*store)->Put(kSpace, {&block, 1});
  }
  ASSERT_EQ(status.code(), Code::kIoError);
  EXPECT_THAT(status.message(), HasSubstr(folder));
  EXPECT_THAT(status.message(), HasSubstr("free space there"));
}

// A disk that a test fills and empties.
class FillingDisk {
 public:
  FillingDisk() : faults_(NewFaultFileSystem(NewPosixFileSystem(), Options(switch_), Clock())) {}
  ~FillingDisk() { std::filesystem::remove(switch_); }

  void Fill() { std::ofstream(switch_) << "full"; }
  void Empty() { std::filesystem::remove(switch_); }
  FileSystem* files() { return faults_.get(); }

 private:
  static FaultFileOptions Options(const std::string& while_file) {
    FaultFileOptions options;
    options.faults = {{FileFault::Kind::kFull, "*", 0, {.while_file = while_file}}};
    return options;
  }
  static std::shared_ptr<MonotonicClock> Clock() { return NewSystemClock(); }

  const std::string switch_ = NewFolder() + ".full";
  const std::unique_ptr<FileSystem> faults_;
};

// Puts blocks until one is refused, or there are `count`.
Status PutMany(DiskStore& store, uint64_t count) {
  Status status;
  for (uint64_t number = 0; number < count && status.ok(); ++number) {
    const std::vector<std::byte> bytes = BlockOf(number, 4096);
    const DiskBlock block{number, bytes};
    status = store.Put(kSpace, {&block, 1});
  }
  return status;
}

Status CheckMany(DiskStore& store, uint64_t count) {
  std::vector<uint64_t> numbers(count);
  for (uint64_t n = 0; n < count; ++n) numbers[n] = n;
  return store.Get(kSpace, numbers, [&](size_t k, std::span<const std::byte> bytes) -> Status {
    if (std::ranges::equal(bytes, BlockOf(numbers[k], 4096))) return {};
    return {Code::kCorruption, "block " + std::to_string(k)};
  });
}

// More than the memory holds, so that the disk is used.
constexpr uint64_t kManyBlocks = 8000;

TEST(RocksDiskStore, AFullDiskIsWaitedForAndNothingIsLost) {
  FillingDisk disk;
  std::vector<std::string> said;
  DiskStoreOptions options{NewFolder(), 4 << 20};
  options.full_wait_ms = 120'000;
  options.files = disk.files();
  // Space becomes free after the report that there is none.
  options.on_full = [&](const std::string& why) {
    said.push_back(why);
    disk.Empty();
  };
  Result<std::unique_ptr<DiskStore>> store = NewRocksDiskStore(options);
  ASSERT_TRUE(store.ok()) << store.status().message();
  disk.Fill();
  const Status put = PutMany(**store, kManyBlocks);
  EXPECT_TRUE(put.ok()) << put.message();
  ASSERT_GE(said.size(), 2u);
  EXPECT_THAT(said[0], HasSubstr("no space for spilled rows in " + options.folder));
  EXPECT_THAT(said[0], HasSubstr("No space left on device"));
  EXPECT_EQ(said[1], "");
  // And again, in the middle.
  disk.Fill();
  const Status erased = (*store)->EraseAll({{4}, {1}});
  EXPECT_TRUE(erased.ok()) << erased.message();
  disk.Empty();
  const Status read = CheckMany(**store, kManyBlocks);
  EXPECT_TRUE(read.ok()) << read.message();
}

TEST(RocksDiskStore, ADiskThatStaysFullFailsInTheEnd) {
  FillingDisk disk;
  DiskStoreOptions options{NewFolder(), 4 << 20};
  options.full_wait_ms = 300;
  options.files = disk.files();
  Result<std::unique_ptr<DiskStore>> store = NewRocksDiskStore(options);
  ASSERT_TRUE(store.ok());
  disk.Fill();
  const Status put = PutMany(**store, kManyBlocks);
  EXPECT_EQ(put.code(), Code::kIoError);
  EXPECT_THAT(put.message(), HasSubstr("No space left on device"));
  EXPECT_THAT(put.message(), HasSubstr("free space there"));
}

TEST(RocksDiskStore, AWaitForSpaceEndsWhenItIsToldTo) {
  FillingDisk disk;
  DiskStoreOptions options{NewFolder(), 4 << 20};
  options.full_wait_ms = 1'000'000'000;
  options.files = disk.files();
  DiskStore* waiting = nullptr;
  options.on_full = [&](const std::string&) { waiting->StopWaiting(); };
  Result<std::unique_ptr<DiskStore>> store = NewRocksDiskStore(options);
  ASSERT_TRUE(store.ok());
  waiting = store->get();
  disk.Fill();
  EXPECT_EQ(PutMany(**store, kManyBlocks).code(), Code::kIoError);
}

// A full disk at the start is not the operator's mistake.
TEST(RocksDiskStore, AFullDiskAtTheStartIsNoMistake) {
  FillingDisk disk;
  DiskStoreOptions options{NewFolder(), 4 << 20};
  options.files = disk.files();
  disk.Fill();
  const Result<std::unique_ptr<DiskStore>> store = NewRocksDiskStore(options);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), Code::kIoError) << store.status().message();
  EXPECT_THAT(store.status().message(), HasSubstr(options.folder));
}

// Blocks on their way to disk and the index stay within the given memory.
TEST(RocksDiskStore, MemoryStaysBounded) {
  constexpr uint64_t kMemory = 8 << 20, kBlocks = 20000;
  Result<std::unique_ptr<DiskStore>> store = NewRocksDiskStore({NewFolder(), kMemory});
  ASSERT_TRUE(store.ok());
  const std::vector<std::byte> bytes = BlockOf(1, 4096);
  uint64_t most = 0;
  for (uint64_t number = 0; number < kBlocks; ++number) {
    const DiskBlock block{number, bytes};
    ASSERT_TRUE((*store)->Put(kSpace, {&block, 1}).ok());
    if (number % 50 == 0) most = std::max(most, (*store)->memory_bytes());
  }
  EXPECT_LE(most, kMemory + kBlocks * 4);
  EXPECT_GE((*store)->disk_bytes(), kBlocks * 4096 / 2);
}

// A process may open fewer files than a large table's rows take.
[[noreturn]] void PutAndGetWithFewFiles(const std::string& folder) {
  constexpr uint64_t kBlocks = 40000, kStride = 97;
  const rlimit few{64, 64};
  std::string failed = setrlimit(RLIMIT_NOFILE, &few) == 0 ? "" : "setrlimit";
  {
    Result<std::unique_ptr<DiskStore>> store = NewRocksDiskStore({folder, 1 << 20});
    if (!store.ok()) failed = store.status().message();
    const std::vector<std::byte> bytes = BlockOf(1, 4096);
    for (uint64_t number = 0; number < kBlocks && failed.empty(); ++number) {
      const DiskBlock block{number, bytes};
      failed = (*store)->Put(kSpace, {&block, 1}).message();
    }
    for (uint64_t number = 0; number < kBlocks && failed.empty(); number += kStride) {
      failed = (*store)
                   ->Get(kSpace, {&number, 1},
                         [](size_t, std::span<const std::byte>) { return Status(); })
                   .message();
    }
  }
  std::cerr << (failed.empty() ? "all there" : failed) << std::endl;
  std::_Exit(failed.empty() ? 0 : 1);
}

TEST(RocksDiskStoreDeathTest, MoreFilesThanMayBeOpen) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(PutAndGetWithFewFiles(NewFolder()), testing::ExitedWithCode(0), "all there");
}

TEST(RocksDiskStore, EmptiesNoFolderBehindALink) {
  const std::string theirs = testing::TempDir() + "/theirs_" + std::to_string(NewPeerId().value);
  std::filesystem::create_directories(theirs);
  const std::string file = theirs + "/000001.log",
                    link = theirs + ".link";  // Named like one of the store's.
  std::ofstream(file) << "theirs";
  std::filesystem::create_directory_symlink(theirs, link);
  const auto store = NewRocksDiskStore({link, 4 << 20});
  EXPECT_EQ(store.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(store.status().message(), HasSubstr("it is a link"));
  EXPECT_TRUE(std::filesystem::exists(file));
  std::filesystem::remove(link);
  std::filesystem::remove_all(theirs);
}

}  // namespace
}  // namespace hdps
