// Makes records by libprotobuf, and their checksums by isa-l.
#include "scheduler/report/event_records.h"

#ifdef HDPS_WITH_TENSORBOARD
#include <isa-l/crc.h>

#include <bit>
#include <cstdint>
#include <limits>

#include "tensorboard_event.pb.h"
#endif

namespace hdps {

#ifdef HDPS_WITH_TENSORBOARD

namespace {

using tensorboard::Event;

// Appends the bytes of a number, the lowest first.
template <typename Number>
void AppendNumber(Number number, std::string* bytes) {
  for (size_t i = 0; i < sizeof(Number); ++i) *bytes += static_cast<char>(number >> (8 * i));
}

void AppendChecksum(std::string part, std::string* bytes) {
  // isa-l wants bytes that may be changed, and inverts neither the first value nor the result.
  auto* const data = reinterpret_cast<unsigned char*>(part.data());
  const uint32_t crc = ~crc32_iscsi(data, static_cast<int>(part.size()), ~uint32_t{0});
  AppendNumber(std::rotr(crc, 15) + 0xa282ead8u, bytes);
}

std::string Framed(const Event& event) {
  std::string payload, length;
  event.SerializeToString(&payload);
  AppendNumber(static_cast<uint64_t>(payload.size()), &length);
  std::string record = length;
  AppendChecksum(length, &record);
  record += payload;
  AppendChecksum(payload, &record);
  return record;
}

Event EventAt(double time, Clock step) {
  Event event;
  event.set_wall_time(time);
  event.set_step(step);
  return event;
}

}  // namespace

Status CanWriteEvents() { return {}; }

std::string VersionRecord(double time) {
  Event event = EventAt(time, 0);
  event.set_file_version("brain.Event:2");
  return Framed(event);
}

std::string SessionRecord(double time, Clock step) {
  Event event = EventAt(time, step);
  event.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  return Framed(event);
}

std::string ValuesRecord(double time, Clock step, const std::vector<EventValue>& values) {
  Event event = EventAt(time, step);
  for (const EventValue& one : values) {
    tensorboard::Summary::Value& value = *event.mutable_summary()->add_value();
    value.set_tag(one.tag);
    value.mutable_metadata()->mutable_plugin_data()->set_plugin_name("scalars");
    value.mutable_metadata()->set_summary_description(std::string(one.description));
    value.set_simple_value(static_cast<float>(one.value));
  }
  return Framed(event);
}

std::string TextRecord(double time, const std::string& tag, const std::string& markdown) {
  Event event = EventAt(time, 0);
  tensorboard::Summary::Value& value = *event.mutable_summary()->add_value();
  value.set_tag(tag);
  value.mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  tensorboard::Tensor& tensor = *value.mutable_tensor();
  tensor.set_dtype(tensorboard::Tensor::STRING);
  tensor.mutable_tensor_shape();
  tensor.add_string_val(markdown);
  return Framed(event);
}

#else

Status CanWriteEvents() {
  return {Code::kInvalidArgument,
          "--tensorboard: this build of hdps lacks it; scripts/install_deps.sh --tensorboard "
          "installs libisal-dev, libprotobuf-dev and protobuf-compiler; then configure and build "
          "again"};
}

std::string VersionRecord(double) { return {}; }
std::string SessionRecord(double, Clock) { return {}; }
std::string ValuesRecord(double, Clock, const std::vector<EventValue>&) { return {}; }
std::string TextRecord(double, const std::string&, const std::string&) { return {}; }

#endif

}  // namespace hdps
