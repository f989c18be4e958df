// Precompiled for the tests and what they share: the headers of programs, GoogleTest, and those of
// our own that most tests include.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/async.hpp"
#include "common/core/encoding.hpp"
#include "common/core/error.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/core/time.hpp"
#include "programs.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"

// Instantiates what most tests do with JSON and texts, so that they need not. A literal of each length has a type of
// its own.
namespace gitops::precompiled {

template <std::size_t size>
void use_literal(nlohmann::json& json) {
  static constexpr char text[size]{};
  json = nlohmann::json{{text, text}};
  json = nlohmann::json{{text, nlohmann::json()}};
  EXPECT_EQ(json, text);
  EXPECT_EQ(std::string(), text);
  EXPECT_EQ(std::string_view(), text);
  EXPECT_THAT(std::string(), testing::HasSubstr(text));
}

template <std::size_t... sizes>
void use_literals(nlohmann::json& json, std::index_sequence<sizes...> /*below*/) {
  (use_literal<sizes + 1>(json), ...);
}

inline void use_values(nlohmann::json& json) {
  constexpr std::size_t kLongest = 40;
  use_literals(json, std::make_index_sequence<kLongest>());
  json = nlohmann::json{{"", std::string()},  {"", std::string_view()}, {"", true}, {"", nullptr},
                        {"", std::int64_t()}, {"", std::uint64_t()},    {"", 1},    {"", 1U}};
  EXPECT_EQ(std::string(), std::string());
  EXPECT_EQ(std::size_t(), std::size_t());
  EXPECT_EQ(std::size_t(), 1U);
  EXPECT_EQ(1, 1);
  EXPECT_EQ(json, json);
  EXPECT_EQ(json, std::string());
  EXPECT_EQ(json, true);
  EXPECT_EQ(json, nullptr);
  EXPECT_EQ(json, 1);
}

}  // namespace gitops::precompiled
