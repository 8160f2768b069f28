# Run by `cmake --install`: installs `headers` of `source` under `destination`, with the names of their folders prefixed.
# A header that includes one of ours which is not among them would not compile at its user's: an error here.
cmake_policy(VERSION 3.25)
foreach(header ${headers})
  file(READ "${source}/${header}" text)
  string(REGEX MATCHALL "#include \"[^\"]+\"" includes "${text}")
  foreach(include ${includes})
    string(REGEX REPLACE "#include \"([^\"]+)\"" "\\1" name "${include}")
    if(NOT name IN_LIST headers)
      message(FATAL_ERROR "cannot install ${header}: it includes ${name}, which is no public header; add it to "
                          "DWELL_PUBLIC_HEADERS in cmake/DwellInstall.cmake, or do without it")
    endif()
  endforeach()
  string(REGEX REPLACE "#include \"" "#include \"dwell/" text "${text}")
  file(WRITE "${stage}/${header}" "${text}")
  get_filename_component(folder "${header}" DIRECTORY)
  file(INSTALL "${stage}/${header}" DESTINATION "${CMAKE_INSTALL_PREFIX}/${destination}/${folder}")
endforeach()
