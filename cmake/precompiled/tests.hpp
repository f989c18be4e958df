// Precompiled for the tests and what they share: the headers of programs, GoogleTest, and those of
// our own that most tests include.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
