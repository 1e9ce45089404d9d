# SPDX-License-Identifier: Apache-2.0
# cmake -DFROM=kernels.cu -DTO=kernels.cpp -P translate.cmake: what only nvcc understands, for emulated/launch.hpp.
file(READ "${FROM}" text)
# kernel<<<grid, block, bytes, stream>>>(arguments)
string(REGEX REPLACE "([A-Za-z_]+(<[A-Za-z_:, ]+>)?)[ \n]*<<<" "::itspace::test::emulated::launching([=](auto... of) { \\1(of...); }, " text "${text}")
string(REPLACE ">>>(" ")(" text "${text}")
string(REGEX REPLACE "extern __shared__ (__align__\\([0-9]+\\) )?([a-z ]+) ([a-z]+)\\[\\];"
       "\\2* const \\3 = static_cast<\\2*>(::itspace::test::emulated::dynamic_shared());" text "${text}")
# g++ has an alignment before `static`, nvcc after what it stands for.
string(REGEX REPLACE "__shared__ (alignas\\([0-9]+\\)) " "\\1 __shared__ " text "${text}")
file(WRITE "${TO}" "#include \"emulated/launch.hpp\"\n#line 1 \"${FROM}\"\n${text}")
