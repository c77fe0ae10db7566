// Cuts an entry at its slash, and checks both parts; reads times and secrets.
#include "common/job/kafka/kafka_entry.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <ctime>
#include <iterator>
#include <nlohmann/json.hpp>

#include "common/job/spec/data_spec.h"

namespace hdps {
namespace {

constexpr std::string_view kScheme = "kafka://";
constexpr size_t kTopicBytesMax = 249;  // Brokers refuse longer ones.

bool IsTopic(std::string_view name) {
  return !name.empty() && name.size() <= kTopicBytesMax && name != "." && name != ".." &&
         std::ranges::all_of(name, [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
         });
}

bool IsBroker(std::string_view broker) {
  const size_t colon = broker.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view port = broker.substr(colon + 1);
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  return error == std::errc() && end == port.data() + port.size() && number > 0;
}

}  // namespace

bool NamesTopic(std::string_view entry) { return entry.starts_with(kScheme); }

bool ReadsTopic(const DataSpec& data) {
  return std::ranges::any_of(data.train, [](const std::string& e) { return NamesTopic(e); });
}

uint32_t MessagesAwaitedS(const DataSpec& data) {
  constexpr uint32_t kDayS = 86'400;
  if (!ReadsTopic(data)) return 0;
  return data.kafka.flush_s > 0 ? static_cast<uint32_t>(std::ceil(data.kafka.flush_s)) : kDayS;
}

Result<KafkaEntry> ReadKafkaEntry(const std::string& entry) {
  const auto refuse = [&](const std::string& why) {
    return Status(Code::kInvalidArgument,
                  "'" + entry + "': " + why + "; expected kafka://HOST:PORT,HOST:PORT/TOPIC");
  };
  if (!NamesTopic(entry)) return refuse("no topic of Kafka");
  const std::string rest = entry.substr(kScheme.size());
  const size_t slash = rest.find('/');
  if (slash == std::string::npos) return refuse("the topic is missing");
  KafkaEntry read{rest.substr(0, slash), rest.substr(slash + 1)};
  if (!IsTopic(read.topic)) {
    return refuse("'" + read.topic +
                  "' is no name of a topic: letters, digits, '.', '_' and '-', at most 249");
  }
  for (size_t begin = 0; begin <= read.brokers.size();) {
    const size_t end = std::min(read.brokers.find(',', begin), read.brokers.size());
    const std::string broker = read.brokers.substr(begin, end - begin);
    if (!IsBroker(broker)) return refuse("'" + broker + "' is no HOST:PORT");
    begin = end + 1;
  }
  return read;
}

std::optional<int64_t> ReadUtcTime(const std::string& text) {
  std::tm time{};
  const char* const end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &time);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return int64_t{::timegm(&time)} * 1000;
}

bool IsOwnKafkaSetting(std::string_view name) {
  constexpr std::string_view kOwn[] = {
      "auto.offset.reset",     "bootstrap.servers",  "enable.auto.commit",
      "enable.partition.eof",  "group.id",           "group.instance.id",
      "metadata.broker.list",  "auto.commit.enable", "enable.auto.offset.store",
      "statistics.interval.ms"};
  return std::ranges::find(kOwn, name) != std::end(kOwn);
}

Result<std::map<std::string, std::string>> ReadKafkaSecrets(FileSystem& files,
                                                            const std::string& path) {
  std::map<std::string, std::string> secrets;
  if (path.empty()) return secrets;
  constexpr uint64_t kBytesMax = 1 << 20;
  const auto refuse = [&](const std::string& why) {
    return Status(Code::kInvalidArgument, "data.kafka.secrets: " + why);
  };
  const Result<FileAccess> access = files.AccessOf(path);
  if (!access.ok()) return refuse(access.status().message());
  if (!access->ours) return refuse(path + " belongs to another user; chown it to this one");
  if (access->others_read || access->others_write) {
    return refuse(path + " can be read or written by other users, so it is no secret: chmod 600 " +
                  path + ", and change what is in it if they may have read it");
  }
  const Result<std::string> text = ReadWholeFile(files, path, kBytesMax);
  if (!text.ok()) return refuse(text.status().message());
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const std::string mend = R"(; expected an object of texts, such as {"sasl.password": "..."})";
  if (!json.is_object()) return refuse(path + " holds no JSON object" + mend);
  for (const auto& [name, value] : json.items()) {
    // The value is a secret, so no message has it.
    if (!value.is_string()) return refuse(path + ": '" + name + "' is no text" + mend);
    if (IsOwnKafkaSetting(name)) return refuse(path + ": '" + name + "' is set by hdps itself");
    secrets[name] = value.get<std::string>();
  }
  return secrets;
}

}  // namespace hdps
