// Writes TFRecord files of tf.train.Example without the code that reads them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hdps {

// Computes the checksum bit by bit, by its definition (RFC 3720, B.4).
uint32_t Crc32c(std::string_view bytes);
// Returns 4 bytes: the checksum as TFRecord files have it.
std::string MaskedSum(std::string_view bytes);
// Returns the bytes of a record with its length and checksums.
std::string Framed(std::string_view record);

// Each returns the bytes of a feature.
std::string TextFeature(const std::vector<std::string>& values);
std::string FloatFeature(const std::vector<float>& values);
std::string IntegerFeature(const std::vector<int64_t>& values, bool packed = true);

using NamedFeatures = std::vector<std::pair<std::string, std::string>>;
std::string ExampleOf(const NamedFeatures& features);

}  // namespace hdps
