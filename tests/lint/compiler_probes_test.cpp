// Each probe is a small coroutine program; it must end with 0 under the sanitizers of the build.
#include <array>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/system/result.hpp>
#include <gtest/gtest.h>

#undef PROBE
#define PROBE 1
namespace bugs_1 {
#include "compiler/bugs.cpp"
}
TEST(CompilerProbe, Bugs01) {
  EXPECT_EQ(bugs_1::main(), 0);
}

#undef PROBE
#define PROBE 2
namespace bugs_2 {
#include "compiler/bugs.cpp"
}
TEST(CompilerProbe, Bugs02) {
  EXPECT_EQ(bugs_2::main(), 0);
}

#undef PROBE
#define PROBE 3
namespace bugs_3 {
#include "compiler/bugs.cpp"
}
TEST(CompilerProbe, Bugs03) {
  EXPECT_EQ(bugs_3::main(), 0);
}

#undef PROBE
#define PROBE 4
namespace bugs_4 {
#include "compiler/bugs.cpp"
}
TEST(CompilerProbe, Bugs04) {
  EXPECT_EQ(bugs_4::main(), 0);
}

#undef PROBE
#define PROBE 5
namespace bugs_5 {
#include "compiler/bugs.cpp"
}
TEST(CompilerProbe, Bugs05) {
  EXPECT_EQ(bugs_5::main(), 0);
}

#undef PROBE
#define PROBE 6
namespace bugs_6 {
#include "compiler/bugs.cpp"
}
TEST(CompilerProbe, Bugs06) {
  EXPECT_EQ(bugs_6::main(), 0);
}

#undef PROBE
#define PROBE 7
namespace bugs_7 {
#include "compiler/bugs.cpp"
}
TEST(CompilerProbe, Bugs07) {
  EXPECT_EQ(bugs_7::main(), 0);
}

#undef PROBE
#define PROBE 8
namespace bugs_8 {
#include "compiler/bugs.cpp"
}
TEST(CompilerProbe, Bugs08) {
  EXPECT_EQ(bugs_8::main(), 0);
}

#undef PROBE
#define PROBE 9
namespace bugs_9 {
#include "compiler/bugs.cpp"
}
TEST(CompilerProbe, Bugs09) {
  EXPECT_EQ(bugs_9::main(), 0);
}

#undef PROBE
#define PROBE 10
namespace bugs_10 {
#include "compiler/bugs.cpp"
}
TEST(CompilerProbe, Bugs10) {
  EXPECT_EQ(bugs_10::main(), 0);
}

#undef PROBE
#define PROBE 11
namespace bugs_11 {
#include "compiler/bugs.cpp"
}
TEST(CompilerProbe, Bugs11) {
  EXPECT_EQ(bugs_11::main(), 0);
}

#undef PROBE
#define PROBE 12
namespace bugs_12 {
#include "compiler/bugs.cpp"
}
TEST(CompilerProbe, Bugs12) {
  EXPECT_EQ(bugs_12::main(), 0);
}

#undef PROBE
#define PROBE 13
namespace bugs_13 {
#include "compiler/bugs.cpp"
}
TEST(CompilerProbe, Bugs13) {
  EXPECT_EQ(bugs_13::main(), 0);
}

#undef PROBE
#define PROBE 14
namespace bugs_14 {
#include "compiler/bugs.cpp"
}
TEST(CompilerProbe, Bugs14) {
  EXPECT_EQ(bugs_14::main(), 0);
}

#undef PROBE
#define PROBE 15
namespace bugs_15 {
#include "compiler/bugs.cpp"
}
TEST(CompilerProbe, Bugs15) {
  EXPECT_EQ(bugs_15::main(), 0);
}

#undef PROBE
#define PROBE 16
namespace bugs_16 {
#include "compiler/bugs.cpp"
}
TEST(CompilerProbe, Bugs16) {
  EXPECT_EQ(bugs_16::main(), 0);
}

#undef PROBE
#define PROBE 17
namespace bugs_17 {
#include "compiler/bugs.cpp"
}
TEST(CompilerProbe, Bugs17) {
  EXPECT_EQ(bugs_17::main(), 0);
}

// bugs 18 does not compile with Asio on any compiler (co_return with braces).

#undef PROBE
#define PROBE 19
namespace bugs_19 {
#include "compiler/bugs.cpp"
}
TEST(CompilerProbe, Bugs19) {
  EXPECT_EQ(bugs_19::main(), 0);
}

#undef PROBE
#define PROBE 20
namespace bugs_20 {
#include "compiler/bugs.cpp"
}
TEST(CompilerProbe, Bugs20) {
  EXPECT_EQ(bugs_20::main(), 0);
}

#undef PROBE
#define PROBE 21
namespace bugs_21 {
#include "compiler/bugs.cpp"
}
TEST(CompilerProbe, Bugs21) {
  EXPECT_EQ(bugs_21::main(), 0);
}

#undef PROBE
#define PROBE 1
namespace safe_1 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe01) {
  EXPECT_EQ(safe_1::main(), 0);
}

#undef PROBE
#define PROBE 2
namespace safe_2 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe02) {
  EXPECT_EQ(safe_2::main(), 0);
}

#undef PROBE
#define PROBE 3
namespace safe_3 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe03) {
  EXPECT_EQ(safe_3::main(), 0);
}

#undef PROBE
#define PROBE 4
namespace safe_4 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe04) {
  EXPECT_EQ(safe_4::main(), 0);
}

#undef PROBE
#define PROBE 5
namespace safe_5 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe05) {
  EXPECT_EQ(safe_5::main(), 0);
}

#undef PROBE
#define PROBE 6
namespace safe_6 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe06) {
  EXPECT_EQ(safe_6::main(), 0);
}

#undef PROBE
#define PROBE 7
namespace safe_7 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe07) {
  EXPECT_EQ(safe_7::main(), 0);
}

#undef PROBE
#define PROBE 8
namespace safe_8 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe08) {
  EXPECT_EQ(safe_8::main(), 0);
}

#undef PROBE
#define PROBE 9
namespace safe_9 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe09) {
  EXPECT_EQ(safe_9::main(), 0);
}

#undef PROBE
#define PROBE 10
namespace safe_10 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe10) {
  EXPECT_EQ(safe_10::main(), 0);
}

#undef PROBE
#define PROBE 11
namespace safe_11 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe11) {
  EXPECT_EQ(safe_11::main(), 0);
}

#undef PROBE
#define PROBE 12
namespace safe_12 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe12) {
  EXPECT_EQ(safe_12::main(), 0);
}

#undef PROBE
#define PROBE 13
namespace safe_13 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe13) {
  EXPECT_EQ(safe_13::main(), 0);
}

#undef PROBE
#define PROBE 14
namespace safe_14 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe14) {
  EXPECT_EQ(safe_14::main(), 0);
}

#undef PROBE
#define PROBE 15
namespace safe_15 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe15) {
  EXPECT_EQ(safe_15::main(), 0);
}

#undef PROBE
#define PROBE 16
namespace safe_16 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe16) {
  EXPECT_EQ(safe_16::main(), 0);
}

#undef PROBE
#define PROBE 17
namespace safe_17 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe17) {
  EXPECT_EQ(safe_17::main(), 0);
}

#undef PROBE
#define PROBE 18
namespace safe_18 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe18) {
  EXPECT_EQ(safe_18::main(), 0);
}

#undef PROBE
#define PROBE 19
namespace safe_19 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe19) {
  EXPECT_EQ(safe_19::main(), 0);
}

#undef PROBE
#define PROBE 20
namespace safe_20 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe20) {
  EXPECT_EQ(safe_20::main(), 0);
}

#undef PROBE
#define PROBE 21
namespace safe_21 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe21) {
  EXPECT_EQ(safe_21::main(), 0);
}

#undef PROBE
#define PROBE 22
namespace safe_22 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe22) {
  EXPECT_EQ(safe_22::main(), 0);
}

#undef PROBE
#define PROBE 23
namespace safe_23 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe23) {
  EXPECT_EQ(safe_23::main(), 0);
}

#undef PROBE
#define PROBE 24
namespace safe_24 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe24) {
  EXPECT_EQ(safe_24::main(), 0);
}

#undef PROBE
#define PROBE 25
namespace safe_25 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe25) {
  EXPECT_EQ(safe_25::main(), 0);
}

#undef PROBE
#define PROBE 26
namespace safe_26 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe26) {
  EXPECT_EQ(safe_26::main(), 0);
}

#undef PROBE
#define PROBE 27
namespace safe_27 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe27) {
  EXPECT_EQ(safe_27::main(), 0);
}

#undef PROBE
#define PROBE 28
namespace safe_28 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe28) {
  EXPECT_EQ(safe_28::main(), 0);
}

#undef PROBE
#define PROBE 29
namespace safe_29 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe29) {
  EXPECT_EQ(safe_29::main(), 0);
}

#undef PROBE
#define PROBE 30
namespace safe_30 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe30) {
  EXPECT_EQ(safe_30::main(), 0);
}

#undef PROBE
#define PROBE 31
namespace safe_31 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe31) {
  EXPECT_EQ(safe_31::main(), 0);
}

#undef PROBE
#define PROBE 32
namespace safe_32 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe32) {
  EXPECT_EQ(safe_32::main(), 0);
}

#undef PROBE
#define PROBE 33
namespace safe_33 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe33) {
  EXPECT_EQ(safe_33::main(), 0);
}

#undef PROBE
#define PROBE 34
namespace safe_34 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe34) {
  EXPECT_EQ(safe_34::main(), 0);
}

#undef PROBE
#define PROBE 35
namespace safe_35 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe35) {
  EXPECT_EQ(safe_35::main(), 0);
}

#undef PROBE
#define PROBE 36
namespace safe_36 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe36) {
  EXPECT_EQ(safe_36::main(), 0);
}

#undef PROBE
#define PROBE 37
namespace safe_37 {
#include "compiler/safe.cpp"
}
TEST(CompilerProbe, Safe37) {
  EXPECT_EQ(safe_37::main(), 0);
}
