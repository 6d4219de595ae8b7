//! Converts seconds since 1970 to a date and time, in UTC.

/// The months in English, as three letters.
pub const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A date and time in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Date {
    /// The year.
    pub year: u64,
    /// The month, from 1.
    pub month: u64,
    /// The day of the month, from 1.
    pub day: u64,
    /// The hour, 0 to 23.
    pub hour: u64,
    /// The minute.
    pub minute: u64,
    /// The second.
    pub second: u64,
    days: u64,
}

impl Date {
    /// The date that many seconds after 1970-01-01T00:00:00Z.
    pub fn at(seconds: u64) -> Self {
        let (days, rest) = (seconds / 86_400, seconds % 86_400);
        // The year is counted from March, so that the leap day is its last; a
        // cycle of 400 years has 146 097 days.
        let shifted = days + 719_468;
        let (cycle, day) = (shifted / 146_097, shifted % 146_097);
        let year_in_cycle = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day_of_year = day - (365 * year_in_cycle + year_in_cycle / 4 - year_in_cycle / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * march_month + 2) / 5 + 1;
        let month = (march_month + 2) % 12 + 1;
        let year = cycle * 400 + year_in_cycle + u64::from(month < 3);
        let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
        Self { year, month, day, hour, minute, second, days }
    }

    /// The day of the week in English, as three letters.
    pub fn weekday(&self) -> &'static str {
        const NAMES: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
        NAMES[(self.days % 7) as usize]
    }

    /// The month in English, as three letters.
    pub fn month_name(&self) -> &'static str {
        MONTHS[self.month as usize - 1]
    }

    /// The time of day: `23:59:59`.
    pub fn time(&self) -> String {
        format!("{:02}:{:02}:{:02}", self.hour, self.minute, self.second)
    }
}
